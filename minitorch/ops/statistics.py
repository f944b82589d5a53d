"""Order statistics, histograms, reductions that skip NaN, and distances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import comparison as cmp
from . import elementwise as el
from . import indexing, joining, maths, ordering, primitive, reduction, shape
from .autocasting import full
from .families import nondiff
from .inplace import in_place
from .numpy_names import renamed
from .primitive import cast, raw, wrap
from .reduction import Dim, Extremum
from .scans import running

# ---- order ---------------------------------------------------------------------------------------


def mode(input: Any, dim: int = -1, keepdim: bool = False, **names: Any) -> Extremum:
    """`(values, indices)` of the most frequent element along `dim`: the smallest, its last place.

    Raises:
        ShapeError: The axis is empty.
    """
    if names:
        return renamed(mode, locals())
    axis = shape.axis_of("mode", input.ndim, dim)
    if not input.ndim:
        return Extremum(input.clone(), input.new_zeros((), dtype=dtypes.int64))
    length = input.shape[axis]
    if not length:
        raise ShapeError(f"mode: the axis must not be empty. Got {describe(input)}, dim {dim}.")
    order = ordering.argsort(input, axis)
    a = indexing.gather(input.detach(), axis, order)._array
    xp = backend.namespace(a)
    along = xp.arange(length).reshape((-1,) + (1,) * (input.ndim - axis - 1))
    head, tail = _halves(a, axis)
    fresh = xp.concatenate([xp.full(head.shape, True), tail], axis=axis)
    start = running(xp, xp.where(fresh, along, 0), axis, xp.maximum)
    # The first run that is longest ends where the run so far is largest.
    place = (along - start).argmax(axis=axis, keepdims=True)
    indices = indexing.gather(order, axis, wrap(place))
    values = indexing.gather(input, axis, indices)
    if not keepdim:
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return Extremum(values, indices)


def _halves(a: Any, axis: int) -> tuple[Any, Any]:
    """The first slice, and where each later one differs from the one before."""
    before = a[(slice(None),) * axis + (slice(None, -1),)]
    after = a[(slice(None),) * axis + (slice(1, None),)]
    return a[(slice(None),) * axis + (slice(0, 1),)], after != before


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    **names: Any,
) -> Any:
    """The quantiles `q` along `dim`, or of all elements; NaN where a NaN takes part.

    Args:
        input: float32 or float64.
        q: A number or vector from 0 to 1.
        dim: The axis.
        keepdim: Keep the axis with length 1.
        interpolation: Between two elements: linear, lower, higher, midpoint or nearest.

    Returns:
        Tensor with one leading axis for the quantiles where `q` is a vector.

    Raises:
        DtypeError: The input is not float32 or float64.
        ArgumentError: A quantile outside of 0 to 1, or another interpolation.
    """
    if names:
        return renamed(quantile, locals())
    return _quantile("quantile", full(input), q, dim, keepdim, interpolation)


def nanquantile(
    input: Any,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    **names: Any,
) -> Any:
    """`quantile` of what is not NaN."""
    if names:
        return renamed(nanquantile, locals())
    return _quantile("nanquantile", full(input), q, dim, keepdim, interpolation)


def _check_quantile(name: str, input: Any, q: Any, interpolation: str) -> Any:
    if input._array.dtype not in (np.float32, np.float64):
        raise DtypeError(
            f"{name}: the input must be float32 or float64. Got {describe(input)}. Use .float()."
        )
    if interpolation not in _INTERPOLATIONS:
        raise ArgumentError(
            f"{name}: interpolation must be one of {', '.join(_INTERPOLATIONS)}. "
            f"Got {interpolation!r}."
        )
    if not isinstance(q, primitive.Tensor):
        q = input.new_tensor(q)
    elif q._array.dtype != input._array.dtype:
        raise DtypeError(
            f"{name}: q must have the dtype of the input. Got {describe(q)} for {describe(input)}."
        )
    if q.ndim > 1:
        raise ShapeError(f"{name}: q must be a number or a vector. Got {describe(q)}.")
    host = q._array
    if type(host) is np.ndarray and host.size and not (0 <= host.min() and host.max() <= 1):
        raise ArgumentError(
            f"{name}: quantiles must be from 0 to 1. Got {host.min()} to {host.max()}."
        )
    if not input.numel():
        raise ShapeError(f"{name}: the input must not be empty. Got {describe(input)}.")
    return q


def _quantile(
    name: str, input: Any, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Any:
    q = _check_quantile(name, input, q, interpolation)
    ndim = input.ndim
    if dim is None:
        x, axis = shape.reshape(input, (input.numel(),)), 0
    else:
        axis = shape.axis_of(name, ndim, dim)
        x = shape.movedim(input, axis, -1) if ndim else shape.reshape(input, (1,))
    rank = _ranks(name, x._array, q._array.reshape(-1), interpolation)
    ordered = ordering.sort(x, -1)[0]
    xp = backend.namespace(rank)
    low = xp.floor(rank)
    below = indexing.gather(ordered, -1, wrap(low.astype(np.int64)))
    above = indexing.gather(ordered, -1, wrap(xp.ceil(rank).astype(np.int64)))
    weight = 0.5 if interpolation == "midpoint" else wrap(rank - low)
    out = maths.lerp(below, above, weight) if interpolation in ("linear", "midpoint") else below
    out = shape.movedim(out, -1, 0)  # one leading axis for q
    if keepdim and dim is not None and ndim:
        out = shape.unsqueeze(out, axis + 1)
    elif keepdim or not ndim:
        out = shape.reshape(out, (out.shape[0],) + (1,) * ndim)
    return out if q.ndim else out.squeeze(0)


def _ranks(name: str, a: Any, q: Any, interpolation: str) -> Any:
    """The place of each quantile in the order of the last axis, as floats."""
    xp = backend.namespace(a)
    valid = (a == a).sum(axis=-1, keepdims=True)
    length = a.shape[-1]
    if name == "quantile":
        rank = xp.broadcast_to(q * (length - 1), (*a.shape[:-1], q.shape[0]))
        rank = xp.where(valid < length, float(length - 1), rank)
    else:
        rank = xp.maximum(q * (valid - 1).astype(a.dtype), 0.0)
    if interpolation == "lower":
        rank = xp.floor(rank)
    elif interpolation == "higher":
        rank = xp.ceil(rank)
    elif interpolation == "nearest":
        rank = xp.rint(rank)
    return rank.astype(a.dtype, copy=False)


class Range(NamedTuple):
    """The smallest and the largest element."""

    min: Any
    max: Any


def aminmax(input: Any, *, dim: int | None = None, keepdim: bool = False, **names: Any) -> Range:
    """`(min, max)` of all elements or along `dim`."""
    if names:
        return renamed(aminmax, locals())
    axes = () if dim is None else dim
    return Range(reduction.amin(input, axes, keepdim), reduction.amax(input, axes, keepdim))


# ---- without NaN ---------------------------------------------------------------------------------


def nansum(
    input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None, **names: Any
) -> Any:
    """The sum of what is not NaN."""
    if names:
        return renamed(nansum, locals())
    return reduction.sum(_no_nan(input), dim, keepdim, dtype=dtype)


def nanmean(
    input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None, **names: Any
) -> Any:
    """The mean of what is not NaN; NaN where there is nothing else.

    Raises:
        DtypeError: The input is not floating.
    """
    if names:
        return renamed(nanmean, locals())
    reduction.need_float("nanmean", input._array)
    total = reduction.sum(_no_nan(input), dim, keepdim, dtype=dtype)
    count = reduction.sum(cmp.eq(input, input), dim, keepdim)
    return total / cast(count, total._array.dtype)


def _no_nan(x: Any) -> Any:
    if not x.is_floating_point():
        return x
    return el.where(cmp.isnan(x), el.zeros_like(x), x)


# ---- counts --------------------------------------------------------------------------------------


def _bounds(name: str, x: Any, low: float, high: float) -> tuple[float, float]:
    if low == high == 0 and x.size:
        low, high = float(x.min()), float(x.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ArgumentError(f"{name}: the range must be finite. Got {low} to {high}.")
    if low > high:
        raise ArgumentError(f"{name}: max must be above min. Got {low} and {high}.")
    return low, high


def histc(input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements fall into each of `bins` equal bins from `min` to `max`.

    Args:
        input: Floating tensor.
        bins: How many.
        min: Lower end; with `max`, both 0 means the range of the elements.
        max: Upper end.

    Raises:
        DtypeError: The input is not floating.
        ArgumentError: The range is empty or not finite.
    """
    reduction.need_float("histc", input._array)
    if bins < 1:
        raise ArgumentError(f"histc: bins must be positive. Got {bins}.")
    a = input._array.reshape(-1)
    xp = backend.namespace(a)
    low, high = _bounds("histc", a, min, max)
    wide = a.astype(np.float64)
    inside = (wide >= low) & (wide <= high)
    place = ((wide - low) / (high - low) * bins).clip(0, bins - 1)
    place = xp.where(inside, place, bins).astype(np.int64)
    return wrap(xp.bincount(place, minlength=bins + 1)[:bins].astype(a.dtype))


class Histogram(NamedTuple):
    """Counts, or densities, and the edges of their bins."""

    hist: Any
    bin_edges: Any


def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Histogram:
    """`(hist, bin_edges)`: the weight of the elements in each bin, the last one closed.

    Args:
        input: Floating tensor.
        bins: How many equal bins, or a vector of edges.
        range: Ends of equal bins; None for the range of the elements.
        weight: One weight per element.
        density: Divide so that the integral is 1.
    """
    reduction.need_float("histogram", input._array)
    a = input._array.reshape(-1)
    xp = backend.namespace(a)
    if isinstance(bins, primitive.Tensor):
        edges = bins._array
    else:
        low, high = _bounds("histogram", a, *(range or (0, 0)))
        edges = xp.linspace(low, high, bins + 1).astype(a.dtype)
    inside = (a >= edges[0]) & (a <= edges[-1])
    count = edges.shape[0] - 1
    place = xp.searchsorted(edges, a, side="right") - 1
    place = xp.where(inside, xp.minimum(place, count - 1), count)
    weights = None if weight is None else weight._array.reshape(-1)
    hist = xp.bincount(place, weights=weights, minlength=count + 1)[:count].astype(a.dtype)
    if density:
        hist = hist / hist.sum() / (edges[1:] - edges[:-1])
    return Histogram(wrap(hist), wrap(edges))


bincount_array = nondiff(
    "bincount", lambda a, minlength: backend.namespace(a).bincount(a, minlength=minlength)
)


def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each value 0, 1, … occurs in the flat integer tensor, or the sum of its weights."""
    if weights is None:
        return bincount_array(input, minlength=minlength)
    xp = backend.namespace(input._array)
    totals = xp.bincount(input._array, weights=weights._array, minlength=minlength)
    # In float32 only for float32 weights, as in PyTorch.
    single = weights._array.dtype == np.float32
    return wrap(totals.astype(np.float32 if single else np.float64, copy=False))


# ---- differences and distances -------------------------------------------------------------------


def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, **names: Any
) -> Any:
    """The differences of neighbours along `dim`, `n` times.

    Args:
        input: Tensor; bool gives where neighbours differ.
        n: How often.
        dim: The axis.
        prepend: Put before the first element.
        append: Put behind the last one.

    Raises:
        ArgumentError: `n` is negative.
        ShapeError: There is no axis.
    """
    if names:
        return renamed(diff, locals())
    if not input.ndim:
        raise ShapeError("diff: at least 1 axis is needed. Got a 0-d tensor.")
    if n < 0:
        raise ArgumentError(f"diff: n must not be negative. Got {n}.")
    axis = shape.axis_of("diff", input.ndim, dim)
    parts = [x for x in (prepend, input, append) if x is not None]
    x = joining.cat(parts, axis) if len(parts) > 1 else input
    for _ in range(n):
        length = x.shape[axis]
        if length < 2:
            return joining.narrow(x, axis, 0, 0)
        before, after = (joining.narrow(x, axis, start, length - 1) for start in (0, 1))
        x = cmp.ne(after, before) if raw(x).dtype.kind == "b" else after - before
    return x if n else input.clone()


def trapezoid(
    y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1, **names: Any
) -> Any:
    """The integral of `y` along `dim` by trapezoids of width `dx` (1), or between points `x`."""
    if names:
        return renamed(trapezoid, locals())
    return reduction.sum(_trapezoids("trapezoid", y, x, dx, dim), dim)


def cumulative_trapezoid(
    y: Any, x: Any = None, *, dx: float | None = None, dim: int = -1, **names: Any
) -> Any:
    """The running integral of `y` along `dim` by trapezoids."""
    if names:
        return renamed(cumulative_trapezoid, locals())
    from .cumulative import cumsum

    return cumsum(_trapezoids("cumulative_trapezoid", y, x, dx, dim), dim)


def _trapezoids(name: str, y: Any, x: Any, dx: float | None, dim: int) -> Any:
    if x is not None and dx is not None:
        raise ArgumentError(f"{name}: x and dx exclude each other. Got both.")
    axis = shape.axis_of(name, y.ndim, dim)
    length = y.shape[axis]
    if length < 2:
        return joining.narrow(y, axis, 0, 0) * 1.0
    left, right = (joining.narrow(y, axis, start, length - 1) for start in (0, 1))
    if x is None:
        width: Any = 1 if dx is None else dx
    elif x.ndim == 1:
        if x.shape[0] != length:
            raise ShapeError(
                f"{name}: one point per value is needed. Got {describe(x)} for {describe(y)}."
            )
        width = shape.reshape(diff(x), (-1,) + (1,) * (y.ndim - axis - 1))
    else:
        width = diff(x, dim=dim)
    return (left + right) * width / 2.0


def dist(input: Any, other: Any, p: float = 2) -> Any:
    """The p-norm of `input - other`."""
    return reduction.norm(input - other, p)


def renorm(input: Any, p: float, dim: int, maxnorm: float) -> Any:
    """Scales each slice along `dim` whose p-norm is above `maxnorm` down to it.

    Raises:
        ShapeError: Fewer than two axes.
        ArgumentError: The order is not positive, or the limit is negative.
    """
    if input.ndim < 2:
        raise ShapeError(f"renorm: at least 2 axes are needed. Got {describe(input)}.")
    if p <= 0 or maxnorm < 0:
        raise ArgumentError(
            f"renorm: p must be positive and maxnorm not negative. Got {p} and {maxnorm}."
        )
    axis = shape.axis_of("renorm", input.ndim, dim)
    others = tuple(i for i in range(input.ndim) if i != axis)
    size = reduction.norm(input, p, others, True)
    factor = el.where(size > maxnorm, maxnorm / (size + 1e-7), el.ones_like(size))
    return input * factor


renorm_ = in_place("renorm_", renorm)
trapz = trapezoid
