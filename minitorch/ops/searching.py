"""Places in an order, and runs of equal elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, ShapeError, describe
from . import primitive, shape
from .primitive import check_same_device, wrap


def searchsorted(
    sorted_sequence: Any,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Where `input` must be put in so that the last axis of the sequence stays in order.

    Args:
        sorted_sequence: A vector, or a tensor with the leading axes of `input`.
        input: Tensor or number.
        out_int32: int32 in place of int64.
        right: Behind equal elements in place of before them.
        side: `"left"` or `"right"`, the same as a word.
        sorter: The positions that sort the sequence.

    Raises:
        ArgumentError: `side` is another word or contradicts `right`.
        ShapeError: The leading axes differ.
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right'. Got {side!r}.")
    if side == "left" and right:
        raise ArgumentError("searchsorted: side='left' and right=True contradict each other.")
    right = right or side == "right"
    if not isinstance(input, primitive.Tensor):
        input = wrap(np.asarray(input)).to(sorted_sequence.device)
        if sorted_sequence.ndim != 1:
            raise ShapeError(
                f"searchsorted: a number needs a vector. Got {describe(sorted_sequence)}."
            )
    check_same_device("searchsorted", [sorted_sequence, input])
    a, v = sorted_sequence._array, input._array
    if sorter is not None:
        xp = backend.namespace(a)
        a = xp.take_along_axis(a, sorter._array, -1)
    if a.ndim != 1 and a.shape[:-1] != v.shape[:-1]:
        raise ShapeError(
            f"searchsorted: the sequence must be a vector or have the leading axes of the input. "
            f"Got {describe(sorted_sequence)} and {describe(input)}."
        )
    found = _places(a, v, "right" if right else "left")
    return wrap(found.astype(np.int32 if out_int32 else np.int64, copy=False))


def _places(a: Any, v: Any, side: str) -> Any:
    xp = backend.namespace(a)
    common = np.promote_types(a.dtype, v.dtype) if a.dtype != v.dtype else a.dtype
    a, v = a.astype(common, copy=False), v.astype(common, copy=False)
    if a.ndim == 1:
        return xp.asarray(xp.searchsorted(a, v.reshape(-1), side=side)).reshape(v.shape)
    rows, points = a.reshape(-1, a.shape[-1]), v.reshape(-1, v.shape[-1])
    found = [xp.searchsorted(r, p, side=side) for r, p in zip(rows, points, strict=True)]
    return xp.stack(found).reshape(v.shape) if found else xp.zeros(v.shape, dtype=np.int64)


def bucketize(input: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """The number of the bucket between `boundaries` that each element falls into.

    Args:
        input: Tensor or number.
        boundaries: Rising vector.
        out_int32: int32 in place of int64.
        right: A boundary belongs to the bucket above it.

    Raises:
        ShapeError: The boundaries are no vector.
    """
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries must be a vector. Got {describe(boundaries)}.")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along `dim`) without those equal to the one before.

    Args:
        input: Tensor.
        return_inverse: Also give the position in the result of each element.
        return_counts: Also give how often each one stood in a row.
        dim: The axis; None for the flat tensor.
    """
    source = input.shape
    x = shape.reshape(input, (input.numel(),)) if dim is None else input
    axis = 0 if dim is None else shape.axis_of("unique_consecutive", x.ndim, dim)
    a = x._array
    xp = backend.namespace(a)
    length = a.shape[axis]
    before = a[(slice(None),) * axis + (slice(None, -1),)]
    after = a[(slice(None),) * axis + (slice(1, None),)]
    others = tuple(i for i in range(a.ndim) if i != axis)
    new = (before != after).any(axis=others) if others else before != after
    fresh = xp.concatenate([xp.full((min(length, 1),), True), new])
    (starts,) = fresh.nonzero()
    out = [x[(slice(None),) * axis + (wrap(starts),)]]
    if return_inverse:
        inverse = wrap((fresh.cumsum() - 1).astype(dtypes.int64.numpy))
        out.append(shape.reshape(inverse, source) if dim is None else inverse)
    if return_counts:
        ends = xp.concatenate([starts[1:], xp.full((min(length, 1),), length)])
        out.append(wrap((ends - starts).astype(np.int64, copy=False)))
    return tuple(out) if len(out) > 1 else out[0]
