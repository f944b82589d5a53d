"""Elements at flat positions, and the sum of elements into flat positions."""

from __future__ import annotations

import math
from typing import Any

from .. import backend
from .primitive import Primitive, raw


def _take(a: Any, *, index: Any, source: tuple[int, ...]) -> Any:
    return backend.namespace(a).take(a.reshape(-1), index)


def _sum_into(g: Any, *, index: Any, source: tuple[int, ...]) -> Any:
    xp = backend.namespace(g)
    out = xp.zeros(math.prod(source), g.dtype)
    xp.add.at(out, index.reshape(-1), g.reshape(-1))
    return out.reshape(source)


_TAKE = Primitive(
    "take",
    _take,
    (lambda g, *, index, source: _SUM_INTO(g, index=index, source=source),),
)
_SUM_INTO = Primitive(
    "sum_into",
    _sum_into,
    (lambda g, *, index, source: _TAKE(g, index=index, source=source),),
)


def take_flat(x: Any, index: Any) -> Any:
    """The elements of `x` at the flat positions `index`, which nobody may change afterwards."""
    return _TAKE(x, index=raw(index), source=tuple(x.shape))
