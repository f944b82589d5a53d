"""Rows for convolutions of three axes, transposed convolutions, patches and padding."""

from __future__ import annotations

from typing import Any

from nn_table import _row
from op_table import Row

VOLUME = (((1, 2, 3, 3, 2),), ((2, 3, 2, 3),), ((0, 2, 3, 3, 2),))
IMAGE = (((2, 2, 3, 3),), ((2, 4, 3),), ((0, 2, 3, 3),))
SERIES = (((2, 2, 4),), ((2, 5),), ((0, 2, 4),))


def _conv(
    name: str, function: str, weight: Any, shapes: Any, *options: Any, bias: int | None = None
) -> Row:
    sizes = tuple((*s, weight, *([] if bias is None else [(bias,)])) for s in shapes)

    def call(F: Any, m: Any, x: Any, w: Any, b: Any = None) -> Any:
        return getattr(F, function)(x, w, b, *options)

    return _row(f"F.{function} {name}", call, sizes)


CONVOLUTION = [
    _conv("plain", "conv3d", (3, 2, 2, 2, 1), VOLUME, bias=3),
    _conv("all", "conv3d", (2, 1, 2, 1, 2), VOLUME, (1, 2, 1), (1, 0, 2), (2, 1, 1), 2),
    _conv("same", "conv3d", (1, 2, 2, 3, 1), VOLUME, 1, "same"),
    _conv("pointwise", "conv3d", (3, 2, 1, 1, 1), VOLUME, bias=3),
    _conv("plain", "conv_transpose1d", (2, 3, 3), SERIES, bias=3),
    _conv("all", "conv_transpose1d", (2, 1, 2), SERIES, 3, 1, 2, 2, 2, bias=2),
    _conv("plain", "conv_transpose2d", (2, 3, 2, 3), IMAGE, bias=3),
    _conv("stride", "conv_transpose2d", (2, 2, 3, 2), IMAGE, 2, 1, 1),
    _conv("all", "conv_transpose2d", (2, 2, 2, 2), IMAGE, (2, 1), (0, 1), (1, 0), 2, (1, 2)),
    _conv("wide extra", "conv_transpose2d", (2, 1, 2, 2), IMAGE, 1, 1, 1, 1, 2),
    _conv("pointwise", "conv_transpose2d", (2, 3, 1, 1), IMAGE, bias=3),
    _conv("plain", "conv_transpose3d", (2, 2, 2, 1, 2), VOLUME[:1], bias=2),
    _conv("all", "conv_transpose3d", (2, 1, 1, 2, 2), VOLUME, 2, (0, 1, 0), 1, 2),
]


def _pad(name: str, widths: Any, mode: str, shapes: Any) -> Row:
    return _row(f"F.pad {name}", lambda F, m, x: F.pad(x, widths, mode=mode), shapes)


PAD = [
    _pad("constant empty", (1, 2), "constant", (((0, 3),), ((3, 0),))),
    _pad("reflect cut", (2, -1, -1, 1), "reflect", (((2, 3, 4, 5),), ((3, 4, 5),))),
    _pad("replicate cut", (-1, 3), "replicate", (((2, 3, 4),), ((3, 4),))),
    _pad("circular cut", (-2, 1), "circular", (((2, 3, 4),), ((3, 4),))),
    _pad("reflect 3d", (1, 0, 1, 1, 0, 1), "reflect", (((1, 2, 2, 3, 2),),)),
    _pad("replicate 3d", (1, 0, 2, 1, 0, 1), "replicate", (((1, 2, 2, 1, 2),),)),
    _pad("circular 3d", (1, 0, 1, 1, 0, 2), "circular", (((1, 2, 2, 3, 2),),)),
]

PATCHES = [
    _row("F.unfold all", lambda F, m, x: F.unfold(x, (2, 1), 2, (1, 0), 2), (((2, 2, 4, 3),),)),
    _row("F.fold all", lambda F, m, x: F.fold(x, (4, 3), 2, 1, 1, 2), (((1, 8, 6),), ((0, 8, 6),))),
]

ROWS = [*CONVOLUTION, *PAD, *PATCHES]
