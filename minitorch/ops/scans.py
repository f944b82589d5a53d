"""Running extrema and running sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from . import elementwise as el
from . import indexing, shape
from .numpy_names import renamed
from .primitive import OUT, Primitive, raw, wrap
from .reduction import Extremum, need_float
from .wide import wide


def running(xp: Any, a: Any, axis: int, combine: Any) -> Any:
    """Running results of `combine` along an axis; by doubling where a ufunc cannot accumulate."""
    if xp is np:
        return combine.accumulate(a, axis=axis)
    reach, out = 1, a
    while reach < a.shape[axis]:
        head = out[(slice(None),) * axis + (slice(None, reach),)]
        left = out[(slice(None),) * axis + (slice(None, -reach),)]
        right = out[(slice(None),) * axis + (slice(reach, None),)]
        out = xp.concatenate([head, combine(left, right)], axis=axis)
        reach *= 2
    return out


def _running_extremum(name: str, input: Any, dim: int) -> Extremum:
    axis = shape.axis_of(name, input.ndim, dim)
    if not input.ndim:
        return Extremum(input.clone(), input.new_zeros((), dtype=dtypes.int64))
    a = input._array
    xp = backend.namespace(a)
    if not a.size:
        return Extremum(input.clone(), input.new_zeros(input.shape, dtype=dtypes.int64))
    best = running(xp, a, axis, xp.maximum if name == "cummax" else xp.minimum)
    along = xp.arange(a.shape[axis]).reshape((-1,) + (1,) * (a.ndim - axis - 1))
    # Of equal elements the last one counts; NaN is above all and stays.
    hit = (a == best) | (a != a)
    found = running(xp, xp.where(hit, along, 0), axis, xp.maximum)
    indices = wrap(xp.broadcast_to(found, a.shape).astype(np.int64, copy=False))
    return Extremum(indexing.gather(input, axis, indices), indices)


def cummax(input: Any, dim: Any = None, **names: Any) -> Extremum:
    """`(values, indices)` of the largest element so far along `dim`."""
    if names:
        return renamed(cummax, locals())
    return _running_extremum("cummax", input, dim)


def cummin(input: Any, dim: Any = None, **names: Any) -> Extremum:
    """`(values, indices)` of the smallest element so far along `dim`."""
    if names:
        return renamed(cummin, locals())
    return _running_extremum("cummin", input, dim)


def _forward(a: Any, *, axis: int) -> Any:
    xp = backend.namespace(a)
    if not a.size:
        return a.copy()
    with np.errstate(invalid="ignore"):
        return running(xp, wide(a), axis, xp.logaddexp).astype(a.dtype, copy=False)


def _rule(g: Any, a: Any, out: Any, *, axis: int) -> Any:
    """`Σ_{k≥i} g_k exp(a_i - out_k)`: positive and negative parts as logarithms."""

    def part(signed: Any) -> Any:
        there = (signed > 0) & finite
        safe = el.where(there, signed, el.ones_like(signed))
        nothing = el.zeros_like(safe) - math.inf
        logs = el.where(there, el.log(safe) - level, nothing)
        return el.exp(_reversed(logs, axis) + a)

    finite = out > -math.inf
    level = el.where(finite, out, el.zeros_like(out))

    return part(g) - part(-g)


def _reversed(x: Any, axis: int) -> Any:
    return shape.flip(_LOGCUMSUMEXP(shape.flip(x, (axis,)), axis=axis), (axis,))


_LOGCUMSUMEXP = Primitive("logcumsumexp", _forward, (_rule,), (0, OUT))


def logcumsumexp(input: Any, dim: Any = None, **names: Any) -> Any:
    """The logarithm of the running sum of exponentials along `dim`.

    Raises:
        DtypeError: The input is not floating.
    """
    if names:
        return renamed(logcumsumexp, locals())
    need_float("logcumsumexp", raw(input))
    axis = shape.axis_of("logcumsumexp", input.ndim, dim)
    return _LOGCUMSUMEXP(input, axis=axis) if input.ndim else input.clone()
