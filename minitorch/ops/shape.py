"""Operations that change shape or order of axes; views share memory wherever NumPy's do."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, AxisError, ShapeError, describe
from .numpy_names import renamed
from .primitive import Primitive, version_of, wrap


def axis_of(name: str, ndim: int, dim: int) -> int:
    """`dim` as a number from 0 to `ndim - 1`; a 0-d tensor counts as having one axis.

    Raises:
        AxisError: The axis does not exist.
        TypeError: `dim` is no number.
    """
    size = ndim if ndim > 0 else 1
    try:
        if -size <= dim < size:
            return dim % size
    except TypeError:
        raise TypeError(f"{name}: dim must be a whole number. Got {dim!r}.") from None
    raise AxisError(f"{name}: dim must be from {-size} to {size - 1} for {ndim} axes. Got {dim}.")


def sizes_of(args: Sequence[Any], named: Any = None) -> tuple[int, ...]:
    """`f(2, 3)`, `f((2, 3))` and the same as a keyword, as a tuple of ints."""
    if named is not None:
        args = (named,)
    if len(args) == 1 and isinstance(args[0], tuple | list):
        args = args[0]
    # Of a list: a tuple of an iterator is made larger first, and CPython keeps 2000 of each size.
    return tuple([*map(operator.index, args)])


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array or Tensor as a plain tuple."""
    shape: tuple[int, ...] = getattr(x, "_array", x).shape
    return shape


# ---- reshaping -----------------------------------------------------------------------------------

_RESHAPE = Primitive(
    "reshape",
    lambda a, *, shape, source: a.reshape(shape),
    (
        lambda g, *, shape, source: (
            g.reshape(source) if type(g) is np.ndarray else reshape(g, source)
        ),
    ),
    view=True,
)


def _filled(name: str, x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with -1 computed, checked against the number of elements."""
    total = math.prod(shape_of(x))
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) > 1:
        raise ShapeError(f"{name}: only one size may be -1. Got {shape}.")
    if -1 in shape:
        if known == 0 or total % known:
            raise ShapeError(
                f"{name}: {describe(x)} has {total} elements, which {shape} cannot hold. "
                "The named sizes must divide that number."
            )
        return tuple([total // known if n == -1 else n for n in shape])
    if known != total or min(shape, default=0) < 0:
        raise ShapeError(
            f"{name}: the number of elements must stay the same. "
            f"Got {describe(x)} ({total}) for {shape} ({known})."
        )
    return shape


def reshape(input: Any, *args: Any, shape: Any = None) -> Any:
    """The same elements in another shape; a view where the memory allows it.

    Raises:
        ShapeError: The number of elements differs.
    """
    target = sizes_of(args, shape)
    source = shape_of(input)
    try:
        return _RESHAPE(input, shape=target, source=source)
    except ValueError:
        target = _filled("reshape", input, target)
    return _RESHAPE(input, shape=target, source=source)


def view(input: Any, *args: Any, size: Any = None) -> Any:
    """`reshape` that never copies; given a dtype, the same bytes read as that.

    Raises:
        ShapeError: The memory has another order, so that a copy would be needed.
    """
    if len(args) == 1 and isinstance(args[0], dtypes.dtype):
        return _read_as(input, args[0])
    target, source = sizes_of(args, size), shape_of(input)
    if min(target, default=0) < 0 or math.prod(target) != math.prod(source):
        target = _filled("view", input, target)
    out = _RESHAPE(input, shape=target, source=source)
    if out._view is None and out._array.size:
        raise ShapeError(
            f"view: {describe(input)} cannot be seen as {target} without copying, because its "
            "axes were reordered. Use reshape, or contiguous() first."
        )
    return out


def _read_as(input: Any, dtype: dtypes.dtype) -> Any:
    try:
        out = wrap(input._array.view(dtype.numpy))
    except ValueError as error:
        raise ShapeError(
            f"view: the last axis must be contiguous and hold whole elements of {dtype}. "
            f"Got {describe(input)}: {error}"
        ) from None
    out._version = version_of(input)
    return out


def view_as(input: Any, other: Any) -> Any:
    """`view` with the shape of `other`."""
    return view(input, shape_of(other))


def reshape_as(input: Any, other: Any) -> Any:
    """`reshape` to the shape of `other`."""
    return reshape(input, shape_of(other))


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes `start_dim` to `end_dim` as one."""
    shape = shape_of(input)
    first = axis_of("flatten", len(shape), start_dim)
    last = axis_of("flatten", len(shape), end_dim)
    if not shape:
        return reshape(input, 1)
    if first > last:
        raise ShapeError(
            f"flatten: start_dim must not come after end_dim. Got {start_dim} and {end_dim}."
        )
    middle = math.prod(shape[first : last + 1])
    return reshape(input, shape[:first] + (middle,) + shape[last + 1 :])


def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """The axis `dim` as several axes of the given sizes; one may be -1."""
    shape = shape_of(input)
    axis = axis_of("unflatten", len(shape), dim)
    sizes = tuple(sizes)
    known = math.prod(n for n in sizes if n != -1)
    if -1 in sizes and known:
        sizes = tuple([shape[axis] // known if n == -1 else n for n in sizes])
    if math.prod(sizes) != shape[axis]:
        raise ShapeError(
            f"unflatten: the sizes must multiply to {shape[axis]}, the length of axis {axis} of "
            f"{describe(input)}. Got {sizes}."
        )
    return reshape(input, shape[:axis] + sizes + shape[axis + 1 :])


def ravel(input: Any) -> Any:
    """All elements on one axis."""
    return reshape(input, -1) if math.prod(shape_of(input)) else reshape(input, 0)


def squeeze(input: Any, dim: int | Sequence[int] | None = None, **names: Any) -> Any:
    """Removes axes of length 1: all of them, or those named."""
    if names:
        return renamed(squeeze, locals())
    shape = shape_of(input)
    if dim is None:
        return reshape(input, tuple([n for n in shape if n != 1]))
    dims = (dim,) if isinstance(dim, int | np.integer) else tuple(dim)
    axes = {axis_of("squeeze", len(shape), d) for d in dims}
    return reshape(input, tuple([n for i, n in enumerate(shape) if i not in axes or n != 1]))


def unsqueeze(input: Any, dim: Any = None, **names: Any) -> Any:
    """Puts an axis of length 1 before position `dim`."""
    if names:
        return renamed(unsqueeze, locals())
    shape = shape_of(input)
    axis = axis_of("unsqueeze", len(shape) + 1, dim)
    return reshape(input, shape[:axis] + (1,) + shape[axis:])


# ---- order of axes -------------------------------------------------------------------------------

_PERMUTE = Primitive(
    "permute",
    lambda a, *, dims: a.transpose(dims),
    (lambda g, *, dims: _put_back(g, _inverse(dims)),),
    view=True,
)


def _put_back(g: Any, order: tuple[int, ...]) -> Any:
    """A gradient with its axes in another order, which needs no check."""
    return g.transpose(order) if type(g) is np.ndarray else permute(g, order)


@functools.cache
def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return tuple(inverse)


def permute(input: Any, *args: Any, dims: Any = None) -> Any:
    """The axes in the order `dims`.

    Raises:
        ShapeError: `dims` does not name each axis once.
    """
    ndim = len(shape_of(input))
    given = sizes_of(args, dims)
    order = tuple([axis_of("permute", ndim, d) for d in given]) if len(given) == ndim else ()
    if sorted(order) != list(range(ndim)):
        raise ShapeError(
            f"permute: each of the {ndim} axes of {describe(input)} must be named once. "
            f"Got {len(given)}: {given}."
        )
    return _PERMUTE(input, dims=order)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Exchanges two axes."""
    ndim = len(shape_of(input))
    i, j = axis_of("transpose", ndim, dim0), axis_of("transpose", ndim, dim1)
    if not ndim:
        return input
    order = list(range(ndim))
    order[i], order[j] = j, i
    return _PERMUTE(input, dims=tuple(order))


def t(input: Any) -> Any:
    """The transpose of a matrix; vectors and scalars stay.

    Raises:
        ShapeError: More than two axes.
    """
    ndim = len(shape_of(input))
    if ndim > 2:
        raise ShapeError(
            f"t: at most 2 axes are allowed. Got {describe(input)}. Use transpose or .mT."
        )
    return input if ndim < 2 else transpose(input, 0, 1)


def mT(input: Any) -> Any:
    """The last two axes exchanged."""
    if len(shape_of(input)) < 2:
        raise ShapeError(f"mT: at least 2 axes are needed. Got {describe(input)}.")
    return transpose(input, -2, -1)


def reversed_axes(input: Any) -> Any:
    """All axes in reverse order (`.T`)."""
    return permute(input, *range(len(shape_of(input)) - 1, -1, -1))


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Moves axes to new positions; the others keep their order."""
    ndim = len(shape_of(input))
    sources = [
        axis_of("movedim", ndim, d) for d in ([source] if isinstance(source, int) else source)
    ]
    targets = [
        axis_of("movedim", ndim, d)
        for d in ([destination] if isinstance(destination, int) else destination)
    ]
    if len(sources) != len(targets):
        raise ShapeError(
            f"movedim: source and destination must name as many axes. Got {source}, {destination}."
        )
    order = [d for d in range(ndim) if d not in sources]
    if not ndim:
        return input
    for target, source_axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, source_axis)
    return permute(input, *order)


# ---- broadcasting --------------------------------------------------------------------------------

_BROADCAST = Primitive(
    "expand",
    lambda a, *, shape, source: backend.namespace(a).broadcast_to(a, shape),
    (lambda g, *, shape, source: _sum_to(g, source),),
    view=True,
)


def _sum_to(g: Any, source: tuple[int, ...]) -> Any:
    from ..autograd.engine import sum_to

    return sum_to(g, source)


def broadcast_to(input: Any, shape: Sequence[int]) -> Any:
    """A read-only view of `input` repeated along axes of length 1 and new leading axes.

    Raises:
        ShapeError: An axis that would have to be repeated is not 1 long.
    """
    source, target = shape_of(input), tuple(shape)
    if source == target:
        return input
    offset = len(target) - len(source)
    if offset < 0 or any(n not in (1, target[i + offset]) for i, n in enumerate(source)):
        raise ShapeError(
            f"expand: only axes of length 1 can be repeated. Got {describe(input)} for {target}. "
            "Use repeat to tile, or unsqueeze so that the axes meet."
        )
    return _BROADCAST(input, shape=target, source=source)


def expand(input: Any, *args: Any, size: Any = None, implicit: bool = False) -> Any:
    """`broadcast_to` where -1 keeps the length of an axis."""
    target, source = sizes_of(args, size), shape_of(input)
    offset = len(target) - len(source)
    full = tuple(
        [source[i - offset] if n == -1 and i >= offset else n for i, n in enumerate(target)]
    )
    return broadcast_to(input, full)


def expand_as(input: Any, other: Any) -> Any:
    """`expand` to the shape of `other`."""
    return broadcast_to(input, shape_of(other))


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*[shape_of(x) for x in tensors])
    return tuple([broadcast_to(x, shape) for x in tensors])


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to.

    Raises:
        ShapeError: They cannot be broadcast.
    """
    import numpy as np

    try:
        return tuple(np.broadcast_shapes(*[tuple(s) for s in shapes]))
    except ValueError:
        raise ShapeError(
            f"broadcast: shapes must be equal or 1 in each axis, counted from the right. "
            f"Got {', '.join(str(tuple(s)) for s in shapes)}."
        ) from None


def repeat(input: Any, *args: Any, repeats: Any = None) -> Any:
    """Tiles the tensor: axis i is repeated `sizes[i]` times.

    Raises:
        ShapeError: Fewer sizes than axes.
    """
    counts, source = sizes_of(args, repeats), shape_of(input)
    if len(counts) < len(source):
        raise ShapeError(
            f"repeat: one count per axis is needed, {len(source)} or more. Got {counts} for "
            f"{describe(input)}."
        )
    source = (1,) * (len(counts) - len(source)) + source
    pairs = [n for i, size in enumerate(source) for n in (counts[i], size)]
    spaced = reshape(input, [m for n in source for m in (1, n)])
    target = tuple([c * n for c, n in zip(counts, source, strict=True)])
    return reshape(broadcast_to(spaced, pairs), target).clone()


def tile(input: Any, *args: Any, dims: Any = None) -> Any:
    """`repeat` where missing leading counts are 1."""
    counts = sizes_of(args, dims)
    missing = len(shape_of(input)) - len(counts)
    return repeat(input, (1,) * missing + counts)


# ---- reordering and padding ----------------------------------------------------------------------

_FLIP = Primitive(
    "flip",
    lambda a, *, dims: backend.namespace(a).flip(a, dims).copy(),
    (lambda g, *, dims: _FLIP(g, dims=dims),),
)
_ROLL = Primitive(
    "roll",
    lambda a, *, shifts, dims: backend.namespace(a).roll(a, shifts, dims),
    (lambda g, *, shifts, dims: _ROLL(g, shifts=tuple([-s for s in shifts]), dims=dims),),
)


def flip(input: Any, *args: Any, dims: Any = None) -> Any:
    """A copy with the named axes reversed."""
    ndim = len(shape_of(input))
    axes = tuple([axis_of("flip", ndim, d) for d in sizes_of(args, dims)])
    if len(set(axes)) != len(axes):
        raise ShapeError(f"flip: an axis may be named once. Got {axes}.")
    return _FLIP(input, dims=axes if ndim else ())


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Shifts along axes; what leaves at one end comes in at the other."""
    shifts = (shifts,) if isinstance(shifts, int | np.integer) else tuple(shifts)
    if dims is None:
        shape = shape_of(input)
        return reshape(_ROLL(reshape(input, (math.prod(shape),)), shifts=shifts, dims=(0,)), shape)
    given = (dims,) if isinstance(dims, int | np.integer) else tuple(dims)
    if len(given) != len(shifts):
        raise ArgumentError(f"roll: one axis per shift is needed. Got {shifts} and {given}.")
    ndim = len(shape_of(input))
    return _ROLL(input, shifts=shifts, dims=tuple([axis_of("roll", ndim, d) for d in given]))


def _triangle(name: str) -> Primitive:
    return Primitive(
        name,
        lambda a, *, diagonal: getattr(backend.namespace(a), name)(a, diagonal),
        (lambda g, *, diagonal: _TRIANGLES[name](g, diagonal=diagonal),),
    )


_TRIANGLES = {"tril": _triangle("tril"), "triu": _triangle("triu")}


def _need_matrix(name: str, input: Any) -> None:
    if len(shape_of(input)) < 2:
        raise ShapeError(f"{name}: at least 2 axes are needed. Got {describe(input)}.")


def tril(input: Any, diagonal: int = 0) -> Any:
    """The lower triangle of the last two axes; 0 above the diagonal."""
    _need_matrix("tril", input)
    return _TRIANGLES["tril"](input, diagonal=diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """The upper triangle of the last two axes; 0 below the diagonal."""
    _need_matrix("triu", input)
    return _TRIANGLES["triu"](input, diagonal=diagonal)


def _pad_forward(a: Any, *, widths: Any, value: float) -> Any:
    xp = backend.namespace(a)
    return xp.pad(a, widths, mode="constant", constant_values=a.dtype.type(value))


def _unpad(g: Any, widths: Any) -> Any:
    index = tuple([slice(lo, g.shape[i] - hi) for i, (lo, hi) in enumerate(widths)])
    return g[index]


_PAD = Primitive("pad", _pad_forward, (lambda g, *, widths, value: _unpad(g, widths),))


def pad_constant(input: Any, widths: Sequence[tuple[int, int]], value: float = 0.0) -> Any:
    """Adds `widths[i] = (before, after)` elements of `value` to each axis; negative widths cut."""
    if any(n < 0 for pair in widths for n in pair):
        cut = tuple(
            [
                slice(max(-lo, 0), size - max(-hi, 0))
                for size, (lo, hi) in zip(shape_of(input), widths, strict=True)
            ]
        )
        input = input[cut]
        widths = [(max(lo, 0), max(hi, 0)) for lo, hi in widths]
    return _PAD(input, widths=tuple(widths), value=value)


def contiguous(input: Any, memory_format: Any = None) -> Any:
    """The tensor itself if its memory is in row order, else a copy; formats are not followed."""
    return input if input._array.flags.c_contiguous else input.clone()


def atleast(input: Any, ndim: int) -> Any:
    """Leading axes of length 1 until there are `ndim`."""
    shape = shape_of(input)
    return reshape(input, (1,) * (ndim - len(shape)) + shape) if len(shape) < ndim else input


swapaxes, moveaxis = transpose, movedim
