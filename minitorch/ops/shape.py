"""Operations that change shape or order of axes; views share memory wherever NumPy's do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import backend
from ..errors import ArgumentError, ShapeError, describe
from . import primitive
from .primitive import Op, Primitive, check_same_device


def axis_of(name: str, ndim: int, dim: int) -> int:
    """`dim` as a number from 0 to `ndim - 1`; a 0-d tensor counts as having one axis.

    Raises:
        ShapeError: The axis does not exist.
    """
    size = ndim if ndim > 0 else 1
    if not -size <= dim < size:
        raise ShapeAxisError(
            f"{name}: dim must be from {-size} to {size - 1} for {ndim} axes. Got {dim}."
        )
    return dim % size


class ShapeAxisError(ShapeError, IndexError):
    """An axis that does not exist; PyTorch raises IndexError for it."""


def sizes_of(args: Sequence[Any]) -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` alike, as a tuple of ints."""
    if len(args) == 1 and not isinstance(args[0], int) and hasattr(args[0], "__iter__"):
        args = tuple(args[0])
    return tuple(int(n) for n in args)


def _shape(x: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = getattr(x, "_array", x).shape
    return shape


# ---- reshaping -----------------------------------------------------------------------------------

_RESHAPE = Primitive(
    "reshape",
    lambda a, *, shape, source: a.reshape(shape),
    (lambda g, *, shape, source: reshape(g, source),),
    view=True,
)


def _filled(name: str, x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with -1 computed, checked against the number of elements."""
    total = math.prod(_shape(x))
    known = math.prod(n for n in shape if n != -1)
    if shape.count(-1) > 1:
        raise ShapeError(f"{name}: only one size may be -1. Got {shape}.")
    if -1 in shape:
        if known == 0 or total % known:
            raise ShapeError(
                f"{name}: {describe(x)} has {total} elements, which {shape} cannot hold. "
                "The named sizes must divide that number."
            )
        return tuple(total // known if n == -1 else n for n in shape)
    if known != total or min(shape, default=0) < 0:
        raise ShapeError(
            f"{name}: the number of elements must stay the same. "
            f"Got {describe(x)} ({total}) for {shape} ({known})."
        )
    return shape


def reshape(input: Any, *shape: Any) -> Any:
    """The same elements in another shape; a view where the memory allows it.

    Raises:
        ShapeError: The number of elements differs.
    """
    target = _filled("reshape", input, sizes_of(shape))
    return _RESHAPE(input, shape=target, source=_shape(input))


def view(input: Any, *shape: Any) -> Any:
    """`reshape` that never copies.

    Raises:
        ShapeError: The memory has another order, so that a copy would be needed.
    """
    target = _filled("view", input, sizes_of(shape))
    out = _RESHAPE(input, shape=target, source=_shape(input))
    if out._view is None and out._array.size:
        raise ShapeError(
            f"view: {describe(input)} cannot be seen as {target} without copying, because its "
            "axes were reordered. Use reshape, or contiguous() first."
        )
    return out


def view_as(input: Any, other: Any) -> Any:
    """`view` with the shape of `other`."""
    return view(input, _shape(other))


def reshape_as(input: Any, other: Any) -> Any:
    """`reshape` to the shape of `other`."""
    return reshape(input, _shape(other))


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """The axes `start_dim` to `end_dim` as one."""
    shape = _shape(input)
    if not shape:
        return reshape(input, 1)
    first = axis_of("flatten", len(shape), start_dim)
    last = axis_of("flatten", len(shape), end_dim)
    if first > last:
        raise ShapeError(
            f"flatten: start_dim must not come after end_dim. Got {start_dim} and {end_dim}."
        )
    middle = math.prod(shape[first : last + 1])
    return reshape(input, shape[:first] + (middle,) + shape[last + 1 :])


def unflatten(input: Any, dim: int, sizes: Sequence[int]) -> Any:
    """The axis `dim` as several axes of the given sizes; one may be -1."""
    shape = _shape(input)
    axis = axis_of("unflatten", len(shape), dim)
    sizes = tuple(sizes)
    known = math.prod(n for n in sizes if n != -1)
    if -1 in sizes and known:
        sizes = tuple(shape[axis] // known if n == -1 else n for n in sizes)
    if math.prod(sizes) != shape[axis]:
        raise ShapeError(
            f"unflatten: the sizes must multiply to {shape[axis]}, the length of axis {axis} of "
            f"{describe(input)}. Got {sizes}."
        )
    return reshape(input, shape[:axis] + sizes + shape[axis + 1 :])


def ravel(input: Any) -> Any:
    """All elements on one axis."""
    return reshape(input, -1) if math.prod(_shape(input)) else reshape(input, 0)


def squeeze(input: Any, dim: int | Sequence[int] | None = None) -> Any:
    """Removes axes of length 1: all of them, or those named."""
    shape = _shape(input)
    if dim is None:
        return reshape(input, tuple(n for n in shape if n != 1))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    axes = {axis_of("squeeze", len(shape), d) for d in dims}
    return reshape(input, tuple(n for i, n in enumerate(shape) if i not in axes or n != 1))


def unsqueeze(input: Any, dim: int) -> Any:
    """Puts an axis of length 1 before position `dim`."""
    shape = _shape(input)
    axis = axis_of("unsqueeze", len(shape) + 1, dim)
    return reshape(input, shape[:axis] + (1,) + shape[axis:])


# ---- order of axes -------------------------------------------------------------------------------

_PERMUTE = Primitive(
    "permute",
    lambda a, *, dims: a.transpose(dims),
    (lambda g, *, dims: permute(g, _inverse(dims)),),
    view=True,
)


def _inverse(dims: Sequence[int]) -> tuple[int, ...]:
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return tuple(inverse)


def permute(input: Any, *dims: Any) -> Any:
    """The axes in the order `dims`.

    Raises:
        ShapeError: `dims` does not name each axis once.
    """
    ndim = len(_shape(input))
    order = tuple(axis_of("permute", ndim, d) for d in sizes_of(dims))
    if sorted(order) != list(range(ndim)):
        raise ShapeError(
            f"permute: each of the {ndim} axes of {describe(input)} must be named once. "
            f"Got {sizes_of(dims)}."
        )
    return _PERMUTE(input, dims=order)


def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """Exchanges two axes."""
    ndim = len(_shape(input))
    if not ndim:
        return input
    i, j = axis_of("transpose", ndim, dim0), axis_of("transpose", ndim, dim1)
    order = list(range(ndim))
    order[i], order[j] = j, i
    return _PERMUTE(input, dims=tuple(order))


def t(input: Any) -> Any:
    """The transpose of a matrix; vectors and scalars stay.

    Raises:
        ShapeError: More than two axes.
    """
    ndim = len(_shape(input))
    if ndim > 2:
        raise ShapeError(
            f"t: at most 2 axes are allowed. Got {describe(input)}. Use transpose or .mT."
        )
    return input if ndim < 2 else transpose(input, 0, 1)


def mT(input: Any) -> Any:
    """The last two axes exchanged."""
    if len(_shape(input)) < 2:
        raise ShapeError(f"mT: at least 2 axes are needed. Got {describe(input)}.")
    return transpose(input, -2, -1)


def reversed_axes(input: Any) -> Any:
    """All axes in reverse order (`.T`)."""
    return permute(input, *range(len(_shape(input)) - 1, -1, -1))


def movedim(input: Any, source: Any, destination: Any) -> Any:
    """Moves axes to new positions; the others keep their order."""
    ndim = len(_shape(input))
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
    source, target = _shape(input), tuple(shape)
    if source == target:
        return input
    offset = len(target) - len(source)
    if offset < 0 or any(n not in (1, target[i + offset]) for i, n in enumerate(source)):
        raise ShapeError(
            f"expand: only axes of length 1 can be repeated. Got {describe(input)} for {target}. "
            "Use repeat to tile, or unsqueeze so that the axes meet."
        )
    return _BROADCAST(input, shape=target, source=source)


def expand(input: Any, *sizes: Any) -> Any:
    """`broadcast_to` where -1 keeps the length of an axis."""
    target, source = sizes_of(sizes), _shape(input)
    offset = len(target) - len(source)
    full = tuple(source[i - offset] if n == -1 and i >= offset else n for i, n in enumerate(target))
    return broadcast_to(input, full)


def expand_as(input: Any, other: Any) -> Any:
    """`expand` to the shape of `other`."""
    return broadcast_to(input, _shape(other))


def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*[_shape(x) for x in tensors])
    return tuple(broadcast_to(x, shape) for x in tensors)


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


def repeat(input: Any, *sizes: Any) -> Any:
    """Tiles the tensor: axis i is repeated `sizes[i]` times.

    Raises:
        ShapeError: Fewer sizes than axes.
    """
    counts, source = sizes_of(sizes), _shape(input)
    if len(counts) < len(source):
        raise ShapeError(
            f"repeat: one count per axis is needed, {len(source)} or more. Got {counts} for "
            f"{describe(input)}."
        )
    source = (1,) * (len(counts) - len(source)) + source
    pairs = [n for i, size in enumerate(source) for n in (counts[i], size)]
    spaced = reshape(input, [m for n in source for m in (1, n)])
    target = tuple(c * n for c, n in zip(counts, source, strict=True))
    return reshape(broadcast_to(spaced, pairs), target).clone()


def tile(input: Any, *dims: Any) -> Any:
    """`repeat` where missing leading counts are 1."""
    counts = sizes_of(dims)
    missing = len(_shape(input)) - len(counts)
    return repeat(input, (1,) * missing + counts)


# ---- joining and splitting -----------------------------------------------------------------------


class _Cat(Op):
    """Joins along an axis; the gradient is cut at the same places."""

    name = "cat"

    def backward(self, node: Any, g: Any, saved: Any) -> Any:
        axis, sizes = node.params["axis"], node.params["sizes"]
        out, start = [], 0
        for size in sizes:
            out.append(narrow(g, axis, start, size))
            start += size
        return out


_CAT = _Cat()


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Joins tensors along the axis `dim`; 1-d empty tensors are skipped, as in PyTorch.

    Raises:
        ShapeError: No tensors, or the other axes differ.
    """
    tensors = list(tensors)
    if not tensors:
        raise ShapeError("cat: at least one tensor is needed. Got an empty list.")
    raw = not isinstance(tensors[0], primitive.Tensor)
    kept = [x for x in tensors if _shape(x) != (0,)] or tensors[:1]
    first = _shape(kept[0])
    if not first:
        raise ShapeError("cat: 0-d tensors cannot be joined. Use stack.")
    axis = axis_of("cat", len(first), dim)
    for i, x in enumerate(kept):
        s = _shape(x)
        if len(s) != len(first) or s[:axis] + s[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise ShapeError(
                f"cat: shapes must be equal except along dim {axis}. "
                f"Got {describe(kept[0])} and, at position {i}, {describe(x)}."
            )
    if raw:
        return backend.namespace(kept[0]).concatenate(kept, axis=axis)
    return _cat_tensors(kept, axis)


def _cat_tensors(kept: list[Any], axis: int) -> Any:
    dtype = kept[0]._array.dtype
    if any(x._array.dtype != dtype for x in kept):
        from functools import reduce

        from .. import dtypes

        target = reduce(dtypes.promote_types, [x.dtype for x in kept])
        kept = [primitive.cast(x, target.numpy) for x in kept]
    check_same_device("cat", kept)
    arrays = [x._array for x in kept]
    out = backend.namespace(arrays[0]).concatenate(arrays, axis=axis)
    params = {"axis": axis, "sizes": [a.shape[axis] for a in arrays]}
    return primitive.finish(_CAT, out, tuple(kept), params)


def stack(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Joins tensors of one shape along a new axis.

    Raises:
        ShapeError: No tensors, or their shapes differ.
    """
    tensors = list(tensors)
    if not tensors:
        raise ShapeError("stack: at least one tensor is needed. Got an empty list.")
    for i, x in enumerate(tensors):
        if _shape(x) != _shape(tensors[0]):
            raise ShapeError(
                f"stack: all shapes must be equal. Got {describe(tensors[0])} and, at position "
                f"{i}, {describe(x)}."
            )
    if _shape(tensors[0]) == (0,):
        return cat([unsqueeze(x, dim) for x in tensors], axis_of("stack", 2, dim))
    return cat(
        [unsqueeze(x, dim) for x in tensors], axis_of("stack", len(_shape(tensors[0])) + 1, dim)
    )


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """The elements `start` to `start + length` along `dim`, as a view.

    Raises:
        ShapeError: The range leaves the tensor.
    """
    shape = _shape(input)
    axis = axis_of("narrow", len(shape), dim)
    start = start + shape[axis] if start < 0 else int(start)
    if length < 0 or start < 0 or start + length > shape[axis]:
        raise ShapeError(
            f"narrow: start + length must be at most {shape[axis]}, the length of axis {axis} of "
            f"{describe(input)}. Got {start} + {length}."
        )
    return input[(slice(None),) * axis + (slice(start, start + length),)]


def select(input: Any, dim: int, index: int) -> Any:
    """The slice at `index` along `dim`; the axis disappears."""
    axis = axis_of("select", len(_shape(input)), dim)
    return input[(slice(None),) * axis + (index,)]


def split(
    tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Any, ...]:
    """Cuts along `dim` into parts of one size (the last may be smaller), or of the given sizes.

    Raises:
        ShapeError: The sizes do not sum to the length of the axis.
    """
    shape = _shape(tensor)
    axis = axis_of("split", len(shape), dim)
    length = shape[axis]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and length):
            raise ArgumentError(f"split: the size must be positive. Got {size}.")
        starts = range(0, length, size) if length else [0]
        sizes = [min(size, length - s) for s in starts]
    else:
        sizes = list(split_size_or_sections)
        if sum(sizes) != length:
            raise ShapeError(
                f"split: the sizes must sum to {length}, the length of axis {axis} of "
                f"{describe(tensor)}. Got {sizes} ({sum(sizes)})."
            )
    out, start = [], 0
    for n in sizes:
        out.append(narrow(tensor, axis, start, n))
        start += n
    return tuple(out)


def chunk(input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    """Cuts along `dim` into at most `chunks` parts of one size; the last may be smaller."""
    if chunks < 1:
        raise ArgumentError(f"chunk: the number of parts must be at least 1. Got {chunks}.")
    length = _shape(input)[axis_of("chunk", len(_shape(input)), dim)]
    return split(input, max(-(-length // chunks), 1), dim)


def unbind(input: Any, dim: int = 0) -> tuple[Any, ...]:
    """All slices along `dim`."""
    axis = axis_of("unbind", len(_shape(input)), dim)
    return tuple(select(input, axis, i) for i in range(_shape(input)[axis]))


# ---- reordering and padding ----------------------------------------------------------------------

_FLIP = Primitive(
    "flip",
    lambda a, *, dims: backend.namespace(a).flip(a, dims).copy(),
    (lambda g, *, dims: _FLIP(g, dims=dims),),
)
_ROLL = Primitive(
    "roll",
    lambda a, *, shifts, dims: backend.namespace(a).roll(a, shifts, dims),
    (lambda g, *, shifts, dims: _ROLL(g, shifts=tuple(-s for s in shifts), dims=dims),),
)


def flip(input: Any, *dims: Any) -> Any:
    """A copy with the named axes reversed."""
    ndim = len(_shape(input))
    return _FLIP(input, dims=tuple(axis_of("flip", ndim, d) for d in sizes_of(dims)))


def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """Shifts along axes; what leaves at one end comes in at the other."""
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None:
        shape = _shape(input)
        return reshape(_ROLL(reshape(input, (math.prod(shape),)), shifts=shifts, dims=(0,)), shape)
    given = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(given) != len(shifts):
        raise ArgumentError(f"roll: one axis per shift is needed. Got {shifts} and {given}.")
    ndim = len(_shape(input))
    return _ROLL(input, shifts=shifts, dims=tuple(axis_of("roll", ndim, d) for d in given))


def _triangle(name: str) -> Primitive:
    return Primitive(
        name,
        lambda a, *, diagonal: getattr(backend.namespace(a), name)(a, diagonal),
        (lambda g, *, diagonal: _TRIANGLES[name](g, diagonal=diagonal),),
    )


_TRIANGLES = {"tril": _triangle("tril"), "triu": _triangle("triu")}


def tril(input: Any, diagonal: int = 0) -> Any:
    """The lower triangle of the last two axes; 0 above the diagonal."""
    return _TRIANGLES["tril"](input, diagonal=diagonal)


def triu(input: Any, diagonal: int = 0) -> Any:
    """The upper triangle of the last two axes; 0 below the diagonal."""
    return _TRIANGLES["triu"](input, diagonal=diagonal)


def _pad_forward(a: Any, *, widths: Any, value: float) -> Any:
    xp = backend.namespace(a)
    return xp.pad(a, widths, mode="constant", constant_values=a.dtype.type(value))


def _unpad(g: Any, widths: Any) -> Any:
    index = tuple(slice(lo, g.shape[i] - hi) for i, (lo, hi) in enumerate(widths))
    return g[index]


_PAD = Primitive("pad", _pad_forward, (lambda g, *, widths, value: _unpad(g, widths),))


def pad_constant(input: Any, widths: Sequence[tuple[int, int]], value: float = 0.0) -> Any:
    """Adds `widths[i] = (before, after)` elements of `value` to each axis; negative widths cut."""
    if any(n < 0 for pair in widths for n in pair):
        cut = tuple(
            slice(max(-lo, 0), size - max(-hi, 0))
            for size, (lo, hi) in zip(_shape(input), widths, strict=True)
        )
        input = input[cut]
        widths = [(max(lo, 0), max(hi, 0)) for lo, hi in widths]
    return _PAD(input, widths=tuple(widths), value=value)


def contiguous(input: Any) -> Any:
    """The tensor itself if its memory is in row order, else a copy."""
    return input if input._array.flags.c_contiguous else input.clone()


def atleast(input: Any, ndim: int) -> Any:
    """Leading axes of length 1 until there are `ndim`."""
    shape = _shape(input)
    return reshape(input, (1,) * (ndim - len(shape)) + shape) if len(shape) < ndim else input


def hstack(tensors: Sequence[Any]) -> Any:
    """Joins along axis 1 (axis 0 for vectors)."""
    tensors = [atleast(x, 1) for x in tensors]
    return cat(tensors, 0 if len(_shape(tensors[0])) == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Any:
    """Joins along axis 0; vectors become rows."""
    return cat([atleast(x, 2) for x in tensors], 0)


swapaxes, moveaxis, concat, concatenate = transpose, movedim, cat, cat
