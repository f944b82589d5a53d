"""Reductions over axes, and statistics made of them."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import backend, dtypes
from ..errors import DtypeError, ShapeError, describe
from . import comparison, joining, primitive, shape, short_axes
from . import elementwise as el
from .autocasting import full
from .families import need_real
from .numpy_names import renamed
from .primitive import OUT, Primitive, cast, finish, finish_one, raw, wrap
from .recording import as_a_whole
from .wide import wide

Dim = int | tuple[int, ...] | list[int] | None


def axes_of(name: str, ndim: int, dim: Dim) -> tuple[int, ...]:
    """The axes that `dim` names, as non-negative numbers; all axes for None and for ().

    Raises:
        ShapeError: An axis is out of range or named twice.
    """
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return tuple(range(ndim))
    given = (dim,) if isinstance(dim, int | np.integer) else tuple(dim)
    out = tuple([shape.axis_of(name, ndim, d) for d in given])
    if len(set(out)) != len(out):
        raise ShapeError(f"{name}: an axis may be named once. Got dim={dim} for {ndim} axes.")
    return out if ndim else ()


def widened(x: Any, dtype: Any) -> Any:
    """`x` in the dtype in which it is summed: integers and bool become int64."""
    if dtype is not None:
        return cast(x, dtypes.of(dtype).numpy)
    array = raw(x)
    return cast(x, dtypes.int64.numpy) if array.dtype.kind in "iub" else x


# Numbers added one after the other from which that is done in float64: a float32 sum of a million
# is wrong by a percent.
LONG = 1 << 15


def added_one_by_one(a: Any, axes: tuple[int, ...]) -> int:
    """How many numbers NumPy adds so to each sum of an array that is not empty.

    Those that lie side by side it adds in pairs.
    """
    together = 1
    if a.flags.c_contiguous or len(axes) == a.ndim and a.flags.f_contiguous:
        for axis in reversed(range(a.ndim)):
            if axis not in axes:
                break
            together *= a.shape[axis]
    return math.prod(a.shape[i] for i in axes) // together


def sum_arrays(a: Any, *, axes: tuple[int, ...], keepdim: bool, shape: Any) -> Any:
    """The body of the recorded `sum`."""
    if a.dtype in dtypes.HALF:
        a32 = a.astype(np.float32)
        return sum_arrays(a32, axes=axes, keepdim=keepdim, shape=shape).astype(a.dtype)
    if type(a) is np.ndarray:
        if a.size >= LONG and a.dtype == np.float32 and added_one_by_one(a, axes) >= LONG:
            return a.sum(axis=axes, dtype=np.float64, keepdims=keepdim).astype(np.float32)
        if a.size >= short_axes.MANY and (found := short_axes.sums(a, axes, keepdim)) is not None:
            return found
        return np.add.reduce(a, axis=axes, keepdims=keepdim)  # type: ignore[call-overload]
    return a.sum(axis=axes, keepdims=keepdim)


def _spread(g: Any, axes: tuple[int, ...], keepdim: bool, shape_: Any) -> Any:
    """`g` with the reduced axes put back as 1, then broadcast to the input's shape."""
    if not keepdim and axes and len(axes) < len(shape_):
        g = g.reshape(tuple([1 if i in axes else n for i, n in enumerate(shape_)]))
    elif not keepdim:
        g = g.reshape((1,) * len(shape_))
    return shape.broadcast_to(g, shape_)


_SUM = Primitive(
    "sum",
    sum_arrays,
    (lambda g, *, axes, keepdim, shape: _spread(g, axes, keepdim, shape),),
)


_total = partial(np.add.reduce, axis=None)


def sum(
    input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None, **names: Any
) -> Any:
    """The sum over the axes `dim` (all of them for None); integers are summed as int64."""
    if names:
        return renamed(sum, locals())
    if dim is None and dtype is None and not keepdim and isinstance(input, primitive.Tensor):
        array = input._array
        plain = type(array) is np.ndarray and array.dtype.char in "fd"
        if plain and (array.size < LONG or array.flags.c_contiguous):
            # The sum that every loss ends in, with nothing to find out about its axes.
            params = {"axes": tuple(range(array.ndim)), "keepdim": False, "shape": array.shape}
            return finish_one(_SUM, _total(array), input, params)
    x = widened(input, dtype)
    a = raw(x)
    axes = axes_of("sum", a.ndim, dim)
    return _SUM(x, axes=axes, keepdim=keepdim, shape=a.shape)


def mean(
    input: Any, dim: Dim = None, keepdim: bool = False, *, dtype: Any = None, **names: Any
) -> Any:
    """The mean over the axes `dim`.

    Raises:
        DtypeError: The input is integer or bool.
    """
    if names:
        return renamed(mean, locals())
    x = cast(input, dtypes.of(dtype).numpy) if dtype is not None else input
    a = raw(x)
    need_float("mean", a)
    axes = axes_of("mean", a.ndim, dim)
    count = math.prod(a.shape[i] for i in axes)
    if a.dtype in dtypes.HALF:
        total = _SUM(cast(x, np.dtype(np.float32)), axes=axes, keepdim=keepdim, shape=a.shape)
        return cast(total / count if count else total * math.nan, a.dtype)
    return _MEAN(x, axes=axes, keepdim=keepdim, shape=a.shape, count=count)


def mean_arrays(a: Any, *, axes: Any, keepdim: bool, shape: Any, count: int) -> Any:
    """The body of the recorded `mean`; `count` numbers have one."""
    total = sum_arrays(a, axes=axes, keepdim=keepdim, shape=shape)
    factor = a.dtype.type(count)
    if not count:
        return total * a.dtype.type(math.nan)
    return total / factor


_MEAN = Primitive(
    "mean",
    mean_arrays,
    (
        lambda g, *, axes, keepdim, shape, count: _spread(
            g / count if count else g, axes, keepdim, shape
        ),
    ),
)


def need_float(name: str, a: Any) -> None:
    if a.dtype.kind in "iub":
        raise DtypeError(
            f"{name}: the input must be floating. Got {describe(a)}. Convert it with .float()."
        )


def var(
    input: Any,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    **names: Any,
) -> Any:
    """The variance over the axes `dim`, divided by `count - correction` (1 by default)."""
    if names:
        return renamed(var, locals())
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    a = input._array
    need_float("var", a)
    if a.dtype.kind == "c":
        options: dict[str, Any] = {"keepdim": keepdim, "correction": correction}
        return var(input.real, dim, unbiased, **options) + var(input.imag, dim, unbiased, **options)
    if a.dtype in dtypes.HALF:
        return _in_float32(var, input, dim, unbiased, keepdim, correction=correction)
    axes = axes_of("var", a.ndim, dim)
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    count = math.prod(a.shape[i] for i in axes)
    centred = input - mean(input, axes, True) if a.ndim else input - input
    total = sum(el.square(centred), axes, keepdim) if a.ndim else el.square(centred)
    freedom = max_number(count - correction, 0)
    return total / freedom if freedom else total / total.new_zeros(())


def _in_float32(function: Any, x: Any, *args: Any, **options: Any) -> Any:
    """`function` of a half type in float32: squares overflow long before their root does."""
    return cast(function(cast(x, np.dtype(np.float32)), *args, **options), x._array.dtype)


def max_number(a: float, b: float) -> float:
    """The larger of two numbers (this module's `max` is the reduction)."""
    return a if a > b else b


def std(
    input: Any,
    dim: Dim = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    **names: Any,
) -> Any:
    """The square root of `var`."""
    if names:
        return renamed(std, locals())
    if input._array.dtype in dtypes.HALF:
        return _in_float32(std, input, dim, unbiased, keepdim, correction=correction)
    return root(var(input, dim, unbiased, keepdim, correction=correction))


def var_mean(input: Any, dim: Dim = None, **options: Any) -> tuple[Any, Any]:
    """`(var, mean)` over the axes `dim`."""
    return var(input, dim, **options), mean(input, dim, options.get("keepdim", False))


def std_mean(input: Any, dim: Dim = None, **options: Any) -> tuple[Any, Any]:
    """`(std, mean)` over the axes `dim`."""
    return std(input, dim, **options), mean(input, dim, options.get("keepdim", False))


# ---- extrema -------------------------------------------------------------------------------------


def sum_along(a: Any, axis: int) -> Any:
    """The sum along one axis, with the axis kept; for arrays and Tensors."""
    return _SUM(a, axes=(axis,), keepdim=True, shape=raw(a).shape)


def _extreme(name: str) -> Primitive:
    def forward(a: Any, *, axes: Any, keepdim: bool, shape: Any) -> Any:
        found = short_axes.extrema(a, axes, keepdim, name=name)
        if found is None:  # half types wide: NumPy's own extrema are slow, and warn of NaN
            found = getattr(wide(a), name)(axis=axes, keepdims=keepdim).astype(a.dtype, copy=False)
        return found

    def rule(g: Any, a: Any, out: Any, *, axes: Any, keepdim: bool, shape: Any) -> Any:
        # Equal extrema share the gradient evenly, as in PyTorch's amax and amin.
        hit = cast(a == _spread(out, axes, keepdim, shape), raw(a).dtype)
        return _spread(g, axes, keepdim, shape) * hit / sum(hit, axes, True)

    return Primitive(f"a{name}", forward, (rule,), (0, OUT))


_AMAX, _AMIN = _extreme("max"), _extreme("min")


def _need_elements(name: str, a: Any, axes: tuple[int, ...]) -> None:
    need_real(name, a)
    if 0 in [a.shape[i] for i in axes]:
        raise ShapeError(
            f"{name}: the reduced axes must not be empty. Got {describe(a)}, axes {axes}. "
            "There is no extremum of nothing."
        )


def amax(input: Any, dim: Dim = (), keepdim: bool = False, **names: Any) -> Any:
    """The largest value over the axes `dim`; equal ones share the gradient."""
    if names:
        return renamed(amax, locals())
    axes = axes_of("amax", input._array.ndim, dim)
    _need_elements("amax", input._array, axes)
    return _AMAX(input, axes=axes, keepdim=keepdim, shape=input._array.shape)


def amin(input: Any, dim: Dim = (), keepdim: bool = False, **names: Any) -> Any:
    """The smallest value over the axes `dim`; equal ones share the gradient."""
    if names:
        return renamed(amin, locals())
    axes = axes_of("amin", input._array.ndim, dim)
    _need_elements("amin", input._array, axes)
    return _AMIN(input, axes=axes, keepdim=keepdim, shape=input._array.shape)


class Extremum(NamedTuple):
    """Values along an axis and where they were found."""

    values: Any
    indices: Any


def _extremum(name: str, input: Any, dim: Any, keepdim: bool) -> Any:
    if isinstance(dim, primitive.Tensor):
        return el.maximum(input, dim) if name == "max" else el.minimum(input, dim)
    if dim is None:
        return amax(input) if name == "max" else amin(input)
    ranked = cast(input.detach(), np.dtype(np.uint8)) if raw(input).dtype.kind == "b" else input
    indices = (argmax if name == "max" else argmin)(ranked, dim, True)
    from .indexing import gather

    values = gather(input, dim, indices) if input.ndim else input.clone()
    if not keepdim and input.ndim:
        axis = shape.axis_of(name, input.ndim, dim)
        values, indices = values.squeeze(axis), indices.squeeze(axis)
    return Extremum(values, indices)


def max(input: Any, dim: Any = None, keepdim: bool = False, **names: Any) -> Any:
    """The largest element; with an axis `(values, indices)`; with a tensor, elementwise."""
    if names:
        return renamed(max, locals())
    return _extremum("max", input, dim, keepdim)


def min(input: Any, dim: Any = None, keepdim: bool = False, **names: Any) -> Any:
    """The smallest element; with an axis `(values, indices)`; with a tensor, elementwise."""
    if names:
        return renamed(min, locals())
    return _extremum("min", input, dim, keepdim)


def _argument(name: str, input: Any, dim: int | None, keepdim: bool) -> Any:
    a = input._array
    if a.dtype.kind == "b":
        raise DtypeError(f"{name}: bool has no order here. Got {describe(a)}. Use .int() first.")
    if dim is None:
        _need_elements(name, a, tuple(range(a.ndim)))
        flat = getattr(a.reshape(-1), name)(0)
        return shape.reshape(
            wrap(backend.namespace(a).asarray(flat)), (1,) * a.ndim if keepdim else ()
        )
    axis = shape.axis_of(name, a.ndim, dim)
    if not a.ndim:
        return input.new_zeros((), dtype=dtypes.int64)
    _need_elements(name, a, (axis,))
    found = short_axes.places(a, axis, keepdim, name=name)
    return wrap(getattr(a, name)(axis=axis, keepdims=keepdim) if found is None else found)


@as_a_whole()
def argmax(input: Any, dim: int | None = None, keepdim: bool = False, **names: Any) -> Any:
    """The position (int64) of the first largest element, in the flat tensor or along `dim`."""
    if names:
        return renamed(argmax, locals())
    return _argument("argmax", input, dim, keepdim)


@as_a_whole()
def argmin(input: Any, dim: int | None = None, keepdim: bool = False, **names: Any) -> Any:
    """The position (int64) of the first smallest element, in the flat tensor or along `dim`."""
    if names:
        return renamed(argmin, locals())
    return _argument("argmin", input, dim, keepdim)


# ---- products, logic, counts ---------------------------------------------------------------------


def _prod_forward(a: Any, *, axis: int, keepdim: bool) -> Any:
    if a.dtype in dtypes.HALF:
        return a.astype(np.float32).prod(axis=axis, keepdims=keepdim).astype(a.dtype)
    return a.prod(axis=axis, keepdims=keepdim)


def _cumprod(a: Any, axis: int) -> Any:
    from .cumulative import cumprod

    return cumprod(a, axis)


def _prod_rule(g: Any, a: Any, *, axis: int, keepdim: bool) -> Any:
    """Products of all the other elements, right also where elements are 0."""
    size = raw(a).shape[axis]
    if not size:
        return el.zeros_like(a)
    if not keepdim:
        g = shape.unsqueeze(g, axis)
    before = joining.cat(
        [
            el.ones_like(joining.narrow(a, axis, 0, 1)),
            _cumprod(joining.narrow(a, axis, 0, size - 1), axis),
        ],
        axis,
    )
    flipped = shape.flip(a, (axis,))
    after = joining.cat(
        [
            el.ones_like(joining.narrow(a, axis, 0, 1)),
            _cumprod(joining.narrow(flipped, axis, 0, size - 1), axis),
        ],
        axis,
    )
    return g * before * shape.flip(after, (axis,))


product_primitive = Primitive("prod", _prod_forward, (_prod_rule,), (0,))


def prod(
    input: Any, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, **names: Any
) -> Any:
    """The product of all elements, or along the axis `dim`; integers multiply as int64."""
    if names:
        return renamed(prod, locals())
    x = widened(full(input), dtype)
    if dim is None:
        return product_primitive(x.reshape(-1), axis=0, keepdim=False)
    axis = shape.axis_of("prod", x.ndim, dim)
    return product_primitive(x, axis=axis, keepdim=keepdim) if x.ndim else x.clone()


@as_a_whole()
def all(input: Any, dim: Dim = None, keepdim: bool = False, **names: Any) -> Any:
    """True where all elements along `dim` are true."""
    if names:
        return renamed(all, locals())
    a = input._array
    out = (a != 0).all(axis=axes_of("all", a.ndim, dim), keepdims=keepdim)
    return wrap(out.astype(np.uint8) if a.dtype == np.uint8 else out)  # PyTorch's exception


@as_a_whole()
def any(input: Any, dim: Dim = None, keepdim: bool = False, **names: Any) -> Any:
    """True where an element along `dim` is true."""
    if names:
        return renamed(any, locals())
    a = input._array
    out = (a != 0).any(axis=axes_of("any", a.ndim, dim), keepdims=keepdim)
    return wrap(out.astype(np.uint8) if a.dtype == np.uint8 else out)  # PyTorch's exception


def count_nonzero(input: Any, dim: Dim = None, **names: Any) -> Any:
    """How many elements along `dim` are not 0 (int64)."""
    if names:
        return renamed(count_nonzero, locals())
    return sum(comparison.ne(input, 0), dim)


# ---- norms ---------------------------------------------------------------------------------------


def norm(
    input: Any,
    p: Any = "fro",
    dim: Dim = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    **names: Any,
) -> Any:
    """The vector norm `(Σ |x|^p)^(1/p)` over the axes `dim`; the gradient at 0 is 0.

    Args:
        input: Floating tensor.
        p: `"fro"` (2), 0, 1, 2, inf, -inf or another number.
        dim: The axes; None for all.
        keepdim: Keep the reduced axes with length 1.
        dtype: Compute in this dtype.
    """
    if names:
        return renamed(norm, locals())
    x = cast(input, dtypes.of(dtype).numpy) if dtype is not None else input
    need_float("norm", x._array)
    if x._array.dtype.kind == "c":
        x = el.abs(x)
    if x._array.dtype in dtypes.HALF:
        return _in_float32(norm, x, p, dim, keepdim)
    axes = axes_of("norm", x.ndim, dim)
    order = 2.0 if p in ("fro", None) else float(p)
    if order == math.inf or order == -math.inf:
        return (amax if order > 0 else amin)(el.abs(x), axes, keepdim)
    if order == 0:
        return sum(el.sign(el.abs(x)), axes, keepdim)
    if order == 1:
        return sum(el.abs(x), axes, keepdim)
    if order == 2:
        return root(sum(el.square(x), axes, keepdim))
    total = sum(el.pow(el.abs(x), order), axes, keepdim)
    none = total == 0
    return el.where(none, 0.0, el.pow(el.where(none, 1.0, total), 1 / order))


def root(total: Any) -> Any:
    """sqrt with gradient 0 at 0."""
    return finish(_ROOT, backend.namespace(total._array).sqrt(total._array), (total,), {})


_ROOT = Primitive(
    "norm",
    lambda a: backend.namespace(a).sqrt(a),
    (lambda g, o: el.where(o == 0, o * 0, g / (o * 2 + (o == 0))),),
    (OUT,),
)
