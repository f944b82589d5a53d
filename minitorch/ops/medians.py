"""The lower median, with and without NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import DtypeError, ShapeError, describe
from . import elementwise as el
from . import indexing, ordering, shape
from .families import need_real
from .indexing import gather
from .numpy_names import renamed
from .primitive import raw, wrap
from .reduction import Extremum


def median(input: Any, dim: int | None = None, keepdim: bool = False, **names: Any) -> Any:
    """The lower median; with an axis `(values, indices)`."""
    if names:
        return renamed(median, locals())
    a = input._array
    need_real("median", a)
    if a.dtype.kind == "b":
        raise DtypeError(f"median: bool has no order here. Got {describe(a)}. Use .int() first.")
    xp = backend.namespace(a)
    if dim is None:
        flat = shape.reshape(input, (a.size,))
        return median(flat, 0)[0] if a.size else el.zeros_like(input).sum() * math.nan
    axis = shape.axis_of("median", a.ndim, dim)
    if not a.ndim:
        return Extremum(input.clone(), input.new_zeros((), dtype=dtypes.int64))
    if not a.shape[axis]:
        raise ShapeError(f"median: the axis must not be empty. Got {describe(a)}, dim {dim}.")
    key = a.astype(np.float32) if a.dtype.kind == "V" else a  # bfloat16 orders no NaN
    order = xp.argsort(key, axis=axis, kind="stable")
    middle = (a.shape[axis] - 1) // 2
    place = xp.full((*a.shape[:axis], 1, *a.shape[axis + 1 :]), middle)
    if a.dtype.kind in "fV":  # NaN, which sorts last, is the median where there is one
        valid = (a == a).sum(axis=axis, keepdims=True)
        place = xp.where(valid < a.shape[axis], valid, place)
    indices = gather(wrap(order), axis, wrap(place))
    values = gather(input, axis, indices)
    if not keepdim:
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return Extremum(values, indices)


def _at(input: Any, axis: int, positions: Any, keepdim: bool) -> Extremum:
    """Values and indices at `positions` (an array with the axis 1 long) in the order of `axis`."""
    order = ordering.argsort(input, axis)
    indices = indexing.gather(order, axis, wrap(positions))
    values = indexing.gather(input, axis, indices)
    if not keepdim:
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return Extremum(values, indices)


def nanmedian(input: Any, dim: int | None = None, keepdim: bool = False, **names: Any) -> Any:
    """The lower median of what is not NaN; with an axis `(values, indices)`."""
    if names:
        return renamed(nanmedian, locals())
    if raw(input).dtype.kind == "b":
        raise DtypeError(f"nanmedian: bool has no order here. Got {describe(input)}. Use .int().")
    if dim is None:
        flat = shape.reshape(input, (input.numel(),))
        return nanmedian(flat, 0)[0] if flat.numel() else median(input)
    axis = shape.axis_of("nanmedian", input.ndim, dim)
    if not input.ndim:
        return Extremum(input.clone(), input.new_zeros((), dtype=dtypes.int64))
    a = input._array
    xp = backend.namespace(a)
    count = (a == a).sum(axis=axis, keepdims=True)
    return _at(input, axis, xp.maximum((count - 1) // 2, 0), keepdim)
