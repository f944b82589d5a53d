"""Writing and reading at positions: what PyTorch has beside gather, scatter and indexing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend
from ..errors import ArgumentError, DtypeError, IndexRangeError, ShapeError, describe
from . import elementwise as el
from . import indexing, joining, ordering, primitive, reduction, shape
from .autocasting import full
from .inplace import in_place
from .numpy_names import renamed
from .primitive import OUT, Primitive, cast, check_same_device, raw, wrap

_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _same_dtype(name: str, input: Any, source: Any) -> None:
    if input._array.dtype != source._array.dtype:
        raise DtypeError(
            f"{name}: both tensors must have one dtype. Got {describe(input)} and "
            f"{describe(source)}. Convert one with .to(dtype)."
        )


# ---- scatter_reduce ------------------------------------------------------------------------------


def _place_forward(a: Any, src: Any, *, axis: int, index: Any, reduce: str) -> Any:
    """`a` with every element of `src` joined in by max, min or product."""
    out = a.copy()
    xp = backend.namespace(a)
    grid = indexing.open_grid(out, axis, index)
    if reduce == "prod":
        _multiply_at(xp, out, grid, src)
    else:
        (xp.maximum if reduce == "amax" else xp.minimum).at(out, grid, src)
    return out


def _multiply_at(xp: Any, out: Any, grid: Any, src: Any) -> None:
    """`out[grid] *= src` with repeated places; CuPy has no `multiply.at`."""
    if xp is np:
        np.multiply.at(out, grid, src)
        return
    host = backend.to_host(out)
    np.multiply.at(host, tuple(backend.to_host(part) for part in grid), backend.to_host(src))
    out[...] = backend.from_host(host, backend.device_of(out))


def _gathered(a: Any, axis: int, index: Any) -> Any:
    return indexing.gather_primitive(a, axis=axis, index=index, source=shape.shape_of(a))


def _summed(a: Any, axis: int, index: Any, source: Any) -> Any:
    return indexing.scatter_sum_primitive(a, axis=axis, index=index, source=source)


def _shares(a: Any, src: Any, out: Any, axis: int, index: Any) -> tuple[Any, Any, Any]:
    """1 where an element is the extremum, for both inputs, and how many of them share a place."""
    dtype = raw(out).dtype
    hit_a = cast(a == out, dtype)
    hit_src = cast(src == _gathered(out, axis, index), dtype)
    count = hit_a + _summed(hit_src, axis, index, shape.shape_of(out))
    return hit_a, hit_src, count


def _place_rule(g: Any, a: Any, src: Any, out: Any, *, axis: int, index: Any, reduce: str) -> Any:
    if reduce == "prod":
        return g * _multiplied(el.ones_like(a), src, axis, index)
    hit_a, _, count = _shares(a, src, out, axis, index)
    return g * hit_a / el.where(count == 0, el.ones_like(count), count)


def _multiplied(a: Any, src: Any, axis: int, index: Any) -> Any:
    return _PLACE(a, src, axis=axis, index=index, reduce="prod")


def _source_rule(g: Any, a: Any, src: Any, out: Any, *, axis: int, index: Any, reduce: str) -> Any:
    if reduce == "prod":
        return _product_rule(g, a, src, out, axis, index)
    _, hit_src, count = _shares(a, src, out, axis, index)
    share = g / el.where(count == 0, el.ones_like(count), count)
    return _gathered(share, axis, index) * hit_src


def _product_rule(g: Any, a: Any, src: Any, out: Any, axis: int, index: Any) -> Any:
    """The product of all the others: without zeros out/src; a lone zero gets the rest."""
    zero = src == 0
    safe = el.where(zero, el.ones_like(src), src)
    zeros = _summed(cast(zero, raw(src).dtype), axis, index, shape.shape_of(a))
    rest = _multiplied(a, safe, axis, index)
    alone = _gathered(zeros, axis, index) - cast(zero, raw(src).dtype)
    others = el.where(zero, _gathered(rest, axis, index), _gathered(rest, axis, index) / safe)
    return _gathered(g, axis, index) * el.where(alone == 0, others, el.zeros_like(others))


_PLACE = Primitive("scatter_reduce", _place_forward, (_place_rule, _source_rule), (0, 1, OUT))
_NEUTRAL = {"sum": 0, "mean": 0, "prod": 1}


def _neutral(reduce: str, like: Any) -> Any:
    """The value that changes nothing."""
    if reduce in _NEUTRAL:
        return _NEUTRAL[reduce]
    a = like._array
    if a.dtype.kind == "b":
        return reduce == "amin"
    if a.dtype.kind in "iu":
        info = np.iinfo(a.dtype)
        return info.min if reduce == "amax" else info.max
    return -math.inf if reduce == "amax" else math.inf


def _neutral_like(reduce: str, x: Any) -> Any:
    a = x._array
    return wrap(backend.namespace(a).full(a.shape, _neutral(reduce, x), dtype=a.dtype))


def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """A copy of `input` with `src` joined in where `index` names along `dim`.

    Args:
        input: Tensor.
        dim: The axis that `index` runs along.
        index: int64, as many axes as `input`.
        src: Tensor of the dtype of `input`.
        reduce: `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`.
        include_self: The old values take part where something is written.

    Raises:
        ArgumentError: Another reduction.
        DtypeError: The dtypes differ.
    """
    if reduce not in _REDUCTIONS:
        raise ArgumentError(
            f"scatter_reduce: reduce must be one of {', '.join(_REDUCTIONS)}. Got {reduce!r}."
        )
    _same_dtype("scatter_reduce", input, src)
    check_same_device("scatter_reduce", [input, src])
    if not input.ndim:
        one = scatter_reduce(
            input.reshape(1),
            dim,
            index.reshape(1),
            src.reshape(1),
            reduce,
            include_self=include_self,
        )
        return one.reshape(())
    axis = shape.axis_of("scatter_reduce", input.ndim, dim)
    i = indexing.index_array("scatter_reduce", input, axis, index, limit=input.shape[axis])
    indexing.check_extent("scatter_reduce", input._array.shape, i.shape, axis)
    part = src[tuple(slice(n) for n in i.shape)] if src._array.shape != i.shape else src
    return _scatter_reduce(input, axis, indexing.kept(i, input, src), part, reduce, include_self)


def _scatter_reduce(
    input: Any, axis: int, i: Any, part: Any, reduce: str, include_self: bool
) -> Any:
    base, source = input, input._array.shape
    # How many elements arrive at each place decides over means and over places left alone.
    ones = wrap(backend.namespace(i).ones(i.shape, dtype=np.int32))
    arrived: Any = None
    if reduce == "mean" or not include_self:
        arrived = _summed(ones, axis, i, source)
    if not include_self:
        base = el.where(arrived > 0, _neutral_like(reduce, input), input)
    if reduce in ("amax", "amin", "prod"):
        return _PLACE(base, part, axis=axis, index=i, reduce=reduce)
    total = base + _summed(part, axis, i, source)
    if reduce == "sum":
        return total
    count = arrived + 1 if include_self else el.clamp_min(arrived, 1)
    if total.is_floating_point():
        return total / cast(count, total._array.dtype)
    return cast(el.floor_divide(total, count), total._array.dtype)


# ---- whole slices at positions of one axis -------------------------------------------------------


def _positions(name: str, input: Any, dim: int, index: Any) -> tuple[int, Any]:
    axis = shape.axis_of(name, input.ndim, dim)
    limit = input.shape[axis] if input.ndim else 1
    i = indexing.index_array(name, input, axis, index, limit=limit)
    if i.ndim > 1:
        raise ShapeError(f"{name}: index must have one axis. Got {describe(index)}.")
    return axis, i.reshape(-1)


def _check_slices(name: str, input: Any, axis: int, i: Any, source: Any) -> None:
    want = input.shape[:axis] + (i.size,) + input.shape[axis + 1 :]
    if tuple(source.shape) != tuple(want):
        raise ShapeError(
            f"{name}: source must have one slice per index, shape {tuple(want)}. "
            f"Got {describe(source)} for {describe(input)}."
        )


def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: float = 1) -> Any:
    """A copy of `input` with `alpha * source` added at the slices `index` (int64[n]) of `dim`."""
    if not input.ndim:
        return index_add(input.reshape(1), 0, index, source.reshape(1), alpha=alpha).reshape(())
    _same_dtype("index_add", input, source)
    axis, i = _positions("index_add", input, dim, index)
    check_same_device("index_add", [input, source])
    _check_slices("index_add", input, axis, i, source)
    added = indexing.put_back(
        source if alpha == 1 else source * alpha,
        index=(slice(None),) * axis + (indexing.kept(i, input, source),),
        source=input._array.shape,
    )
    return input + added


def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """A copy of `input` whose slices `index` (int64[n]) of `dim` are those of `source`."""
    if not input.ndim:
        return index_copy(input.reshape(1), 0, index, source.reshape(1)).reshape(())
    if input.dtype != source.dtype:
        input, source = full(input), full(source)
    _same_dtype("index_copy", input, source)
    axis, i = _positions("index_copy", input, dim, index)
    _check_slices("index_copy", input, axis, i, source)
    out = input.clone()
    out[(slice(None),) * axis + (wrap(i),)] = source
    return out


def index_fill(input: Any, dim: int, index: Any, value: Any) -> Any:
    """A copy of `input` with a number or 0-d tensor in the slices `index` (int64[n]) of `dim`."""
    if isinstance(value, primitive.Tensor) and value.ndim:
        raise ShapeError(f"index_fill: the value must be 0-d. Got {describe(value)}.")
    if not input.ndim:
        return index_fill(input.reshape(1), 0, index, value).reshape(())
    axis = shape.axis_of("index_fill", input.ndim, dim)
    length = input.shape[axis]
    # Alone of its family it counts negative positions from the end, as in PyTorch.
    axis, i = _positions("index_fill", input, dim, el.where(index < 0, index + length, index))
    out = input.clone()
    out[(slice(None),) * axis + (wrap(i),)] = value
    return out


def index_reduce(
    input: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """`scatter_reduce` for whole slices: `reduce` is prod, mean, amax or amin.

    Raises:
        ArgumentError: Another reduction.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise ArgumentError(
            f"index_reduce: reduce must be one of prod, mean, amax, amin. Got {reduce!r}."
        )
    _same_dtype("index_reduce", input, source)
    axis, i = _positions("index_reduce", input, dim, index)
    _check_slices("index_reduce", input, axis, i, source)
    spread = (1,) * axis + (-1,) + (1,) * (input.ndim - axis - 1)
    xp = backend.namespace(i)
    full = xp.broadcast_to(i.reshape(spread), source._array.shape)
    return _scatter_reduce(
        input, axis, indexing.kept(full, input, source), source, reduce, include_self
    )


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy of `input` with `values` written, or added, at `input[indices]`.

    Args:
        input: Tensor.
        indices: A tuple of index tensors (None for a whole axis).
        values: Tensor that broadcasts to the selection.
        accumulate: Add, also where a place is named twice.
    """
    key = tuple(slice(None) if part is None else part for part in indices)
    _same_dtype("index_put", input, values)
    if not accumulate:
        out = input.clone()
        out[key] = values
        return out
    index, _ = indexing.raw_index(key, input._array)
    target = input.detach()[key]._array.shape
    added = indexing.put_back(
        shape.broadcast_to(values, target),
        index=indexing.kept(index, input, values),
        source=input._array.shape,
    )
    return input + added


# ---- flat positions and masks --------------------------------------------------------------------


def take(input: Any, index: Any) -> Any:
    """The elements of the flat tensor at `index`, in the shape of `index`.

    Raises:
        IndexRangeError: A position is outside.
    """
    i = _flat_positions("take", input, index)
    return shape.reshape(input, (input.numel(),))[wrap(i)]


def _flat_positions(name: str, input: Any, index: Any) -> Any:
    i = index._array
    if i.dtype.kind not in "iu":
        raise DtypeError(f"{name}: the index must be int64. Got {describe(index)}. Use .long().")
    check_same_device(name, [input, index])
    total = input.numel()
    if i.size and type(i) is np.ndarray and not (-total <= i.min() and i.max() < total):
        raise IndexRangeError(
            f"{name}: positions must be from {-total} to {total - 1} for {describe(input)}. "
            f"Got {i.min()} to {i.max()}."
        )
    return i


def put(input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """A copy of `input` with `source` written, or added, at flat positions.

    Raises:
        ShapeError: Not as many values as positions.
    """
    _same_dtype("put", input, source)
    i = _flat_positions("put", input, index)
    if i.size != source.numel():
        raise ShapeError(
            f"put: one value per position is needed. Got {describe(source)} for {describe(index)}."
        )
    flat = shape.reshape(input, (input.numel(),))
    out = index_put(
        flat, (wrap(i.reshape(-1)),), shape.reshape(source, (i.size,)), accumulate=accumulate
    )
    return shape.reshape(out, input.shape)


def masked_scatter(input: Any, mask: Any, source: Any) -> Any:
    """A copy of `input` where the true places of `mask` hold the first elements of `source`.

    Raises:
        DtypeError: The mask is not bool, or the dtypes differ.
        ShapeError: `source` has fewer elements than there are true places.
    """
    if mask._array.dtype.kind != "b":
        raise DtypeError(f"masked_scatter: the mask must be bool. Got {describe(mask)}.")
    _same_dtype("masked_scatter", input, source)
    common = shape.broadcast_shapes(input.shape, mask.shape)
    full = shape.broadcast_to(mask, common)
    out = shape.broadcast_to(input, common).clone()
    count = int(full._array.sum())
    if source.numel() < count:
        raise ShapeError(
            f"masked_scatter: source must have at least {count} elements, one per true place of "
            f"the mask. Got {describe(source)}."
        )
    out[full] = shape.reshape(source, (source.numel(),))[:count]
    return out


def argwhere(input: Any) -> Any:
    """The positions of elements that are not 0: int64[n, ndim]."""
    if not input.ndim:
        found = input._array.reshape(1).nonzero()[0].shape[0]
        return input.new_zeros((found, 0), dtype="int64")
    return indexing.nonzero(input)


def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False, **names: Any) -> Any:
    """`(values, indices)` of the k-th smallest element along `dim`, counted from 1.

    Raises:
        ArgumentError: `k` is not from 1 to the length of the axis.
    """
    if names:
        return renamed(kthvalue, locals())
    axis = shape.axis_of("kthvalue", input.ndim, dim)
    length = input.shape[axis] if input.ndim else 1
    if not 1 <= k <= length:
        raise ArgumentError(
            f"kthvalue: k must be from 1 to {length}, the length of axis {axis} of "
            f"{describe(input)}. Got {k}."
        )
    if not input.ndim:
        return reduction.Extremum(input.clone(), input.new_zeros((), dtype="int64"))
    indices = joining.narrow(ordering.argsort(input, axis), axis, k - 1, 1)
    values = indexing.gather(input, axis, indices)
    if not keepdim:
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return reduction.Extremum(values, indices)


def msort(input: Any) -> Any:
    """The tensor sorted along axis 0."""
    return ordering.sort(input, 0)[0]


# ---- a part replaced -----------------------------------------------------------------------------


def _replaced(name: str, input: Any, src: Any, part: Any) -> Any:
    """A copy of `input` whose region `part(copy)` holds `src`."""
    out = input.clone()
    region = part(out)
    if tuple(region.shape) != tuple(src.shape):
        raise ShapeError(
            f"{name}: src must have the shape of the region, {tuple(region.shape)}. "
            f"Got {describe(src)}."
        )
    region.copy_(src)
    return out


def select_scatter(input: Any, src: Any, dim: int, index: int) -> Any:
    """A copy of `input` whose slice `index` along `dim` is `src`."""
    return _replaced("select_scatter", input, src, lambda x: joining.select(x, dim, index))


def slice_scatter(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """A copy of `input` whose elements `start:end:step` along `dim` are `src`."""
    axis = shape.axis_of("slice_scatter", input.ndim, dim)
    key = (slice(None),) * axis + (slice(start, end, step),)
    return _replaced("slice_scatter", input, src, lambda x: x[key])


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """A copy of `input` with `src` on a diagonal."""
    return _replaced(
        "diagonal_scatter", input, src, lambda x: ordering.diagonal(x, offset, dim1, dim2)
    )


index_add_, index_copy_ = in_place("index_add_", index_add), in_place("index_copy_", index_copy)
index_fill_, index_put_ = in_place("index_fill_", index_fill), in_place("index_put_", index_put)
index_reduce_ = in_place("index_reduce_", index_reduce)
scatter_reduce_ = in_place("scatter_reduce_", scatter_reduce)
put_, masked_scatter_ = in_place("put_", put), in_place("masked_scatter_", masked_scatter)
