"""Rows of the rarer operations on shape."""

from __future__ import annotations

from typing import Any

from op_table import MATRIX, NO_GRAD, ONE, Row

FULL = MATRIX[:3]


def _row(name: str, call: Any, shapes: Any = FULL, **options: Any) -> Row:
    return Row(name, call, shapes, **options)


def _joined(m: Any, parts: Any) -> Any:
    return m.cat([part.flatten() * (i + 1) for i, part in enumerate(parts)])


ROWS = [
    _row("unfold", lambda m, x: x.unfold(1, 3, 1)),
    _row("unfold step", lambda m, x: x.unfold(0, 2, 2), MATRIX[:3]),
    _row("repeat_interleave", lambda m, x: m.repeat_interleave(x, 2, 1), MATRIX, integers=True),
    _row("repeat_interleave flat", lambda m, x: x.repeat_interleave(3), ONE),
    _row(
        "repeat_interleave counts",
        lambda m, x: m.repeat_interleave(x, m.tensor([2, 0, 1]), 0),
        (((3, 4),),),
        exempt={"waits": "the shape of the result depends on the values"},
    ),
    *[_row(f"rot90 {k}", lambda m, x, k=k: m.rot90(x, k, (0, 1)), MATRIX) for k in (0, 1, 2, -1)],
    _row("fliplr", lambda m, x: m.fliplr(x), MATRIX),
    _row("flipud", lambda m, x: m.flipud(x), MATRIX),
    _row("dstack", lambda m, a, b: m.dstack([a, b]), (((3, 4), (3, 4)), ((2,), (2,)), ((), ()))),
    _row("column_stack", lambda m, a, b: m.column_stack([a, b]), (((3,), (3, 2)), ((), (1,)))),
    _row("row_stack", lambda m, a, b: m.row_stack([a, b]), (((3,), (2, 3)),)),
    _row("atleast_1d", lambda m, x: m.atleast_1d(x) * 1, ONE),
    _row("atleast_2d", lambda m, x: m.atleast_2d(x) * 1, ONE),
    _row("atleast_3d", lambda m, x: m.atleast_3d(x) * 1, ONE),
    _row("block_diag", lambda m, a, b: m.block_diag(a, b), (((3, 4), (2,)), ((), (2, 2)))),
    _row("cartesian_prod", lambda m, a, b: m.cartesian_prod(a, b), (((3,), (2,)),)),
    _row(
        "combinations",
        lambda m, x: m.combinations(x),
        (((4,),),),
        exempt={"uploads": "the choices"},
    ),
    _row("tensor_split", lambda m, x: _joined(m, m.tensor_split(x, 3, 1)), MATRIX),
    _row("tensor_split at", lambda m, x: _joined(m, x.tensor_split((1, 2), 0)), MATRIX),
    _row("hsplit", lambda m, x: _joined(m, m.hsplit(x, [1])), MATRIX),
    _row("vsplit", lambda m, x: _joined(m, m.vsplit(x, [1, 2])), MATRIX),
    _row("dsplit", lambda m, x: _joined(m, m.dsplit(x, 2)), (((2, 3, 4),),)),
    _row("split_with_sizes", lambda m, x: _joined(m, m.split_with_sizes(x, [1, 3], 1)), MATRIX[:1]),
    _row("diag_embed", lambda m, x: m.diag_embed(x, 1), MATRIX),
    _row("diag_embed dims", lambda m, x: m.diag_embed(x, -1, 0, 2), MATRIX),
    _row("diagflat", lambda m, x: m.diagflat(x, -1), ONE),
    _row("swapdims", lambda m, x: m.swapdims(x, 0, 1), MATRIX),
    _row("narrow_copy", lambda m, x: m.narrow_copy(x, 0, 1, 1), FULL),
    _row(
        "as_strided",
        lambda m, x: m.as_strided(x, (2, 3), (1, 2), 1),
        (((3, 4),),),
        exempt={"strided": "contiguous memory is needed", "uploads": "the positions"},
    ),
    _row(
        "tril_indices",
        lambda m, x: m.tril_indices(3, 4, -1, device=x.device),
        exempt={**NO_GRAD, "uploads": "the positions"},
    ),
    _row(
        "triu_indices",
        lambda m, x: m.triu_indices(3, 4, 1, device=x.device),
        exempt={**NO_GRAD, "uploads": "the positions"},
    ),
    _row(
        "unravel_index",
        lambda m, x: m.unravel_index(m.argmax(x), x.shape)[1],
        (((3, 4),),),
        exempt=NO_GRAD,
    ),
    _row("squeeze several", lambda m, x: m.squeeze(x, (0, 1, 2)), (((1, 3, 1),), ((2, 1, 3),))),
]
