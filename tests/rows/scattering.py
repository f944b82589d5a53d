"""Rows of writing and reading at positions."""

from __future__ import annotations

from typing import Any

from op_table import MATRIX, NO_GRAD, Row

HOST = {"waits": "CuPy has no product at positions", "uploads": "CuPy has no product at positions"}


def _row(name: str, call: Any, shapes: Any, **options: Any) -> Row:
    return Row(name, call, shapes, **options)


def _long(m: Any, values: Any) -> Any:
    return m.tensor(values, dtype=m.int64)


def _reduce(reduce: str, include: bool) -> Row:
    def call(m: Any, a: Any, b: Any) -> Any:
        index = _long(m, [[0, 1, 0, 2], [2, 1, 0, 2]])
        return m.scatter_reduce(a, 0, index, b, reduce, include_self=include)

    exempt = HOST if reduce == "prod" else {}
    if reduce in ("amax", "amin", "prod"):
        exempt = {**exempt, "second": "piecewise"} if reduce != "prod" else exempt
    return _row(
        f"scatter_reduce {reduce} {include}",
        call,
        (((3, 4), (2, 4)),),
        exempt=exempt,
        integers=reduce != "mean",
    )


def _index_reduce(reduce: str) -> Row:
    def call(m: Any, a: Any, b: Any) -> Any:
        return a.index_reduce(0, _long(m, [2, 0, 2]), b, reduce)

    return _row(
        f"index_reduce {reduce}",
        call,
        (((3, 4), (3, 4)),),
        exempt={"parity": "torch warns", **(HOST if reduce == "prod" else {})},
    )


PAIR = (((3, 4), (2, 4)),)

ROWS = [
    *[
        _reduce(reduce, include)
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for include in (True, False)
    ],
    *[_index_reduce(reduce) for reduce in ("prod", "mean", "amax", "amin")],
    _row("index_add", lambda m, a, b: m.index_add(a, 0, _long(m, [2, 2]), b, alpha=2), PAIR),
    _row(
        "index_add dim",
        lambda m, a, b: a.index_add(1, _long(m, [0, 3]), b[:, :2]),
        (((3, 4),) * 2,),
    ),
    _row("index_copy", lambda m, a, b: m.index_copy(a, 0, _long(m, [2, 0]), b), PAIR),
    _row(
        "index_fill", lambda m, a: m.index_fill(a, 1, _long(m, [0, 2]), 1.5), (((3, 4),), ((0, 4),))
    ),
    _row(
        "index_put",
        lambda m, a, b: m.index_put(a, (_long(m, [2, 0]),), b),
        PAIR,
    ),
    _row(
        "index_put accumulate",
        lambda m, a, b: a.index_put(
            (_long(m, [1, 1]), _long(m, [0, 0])), b[0, :2], accumulate=True
        ),
        PAIR,
    ),
    _row("take", lambda m, a: m.take(a, _long(m, [[0, -1], [5, 5]])), (((3, 4),), ((2, 3, 4),))),
    _row("put", lambda m, a, b: m.put(a, _long(m, [[0, 7]]), b[0, :2].reshape(1, 2)), PAIR),
    _row(
        "put accumulate",
        lambda m, a, b: a.put(_long(m, [3, 3]), b[0, :2], accumulate=True),
        PAIR,
    ),
    _row(
        "masked_scatter",
        lambda m, a, b: m.masked_scatter(a, a > 0, b),
        (((3, 4), (12,)), ((3, 4), (4, 4))),
        exempt={"waits": "the mask is counted"},
    ),
    _row("select_scatter", lambda m, a, b: m.select_scatter(a, b[0], 0, 1), PAIR),
    _row("slice_scatter", lambda m, a, b: m.slice_scatter(a, b, 0, 0, 3, 2), PAIR),
    _row(
        "diagonal_scatter",
        lambda m, a, b: m.diagonal_scatter(a, b[0, :3], 1),
        PAIR,
    ),
    _row("scatter value", lambda m, a: m.scatter(a, 1, _long(m, [[0, 3]]), 2.5), MATRIX[:1]),
    _row(
        "scatter add",
        lambda m, a, b: a.detach().scatter(1, _long(m, [[0, 0], [1, 2]]), b.detach(), reduce="add"),
        PAIR,
        exempt={**NO_GRAD, "parity": "torch warns"},
    ),
    _row(
        "scatter multiply",
        lambda m, a: a.detach().scatter(1, _long(m, [[0, 3], [1, 2]]), 2.5, reduce="multiply"),
        (((3, 4),),),
        exempt={**NO_GRAD, **HOST, "parity": "torch warns"},
    ),
]
