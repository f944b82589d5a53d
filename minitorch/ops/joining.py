"""Joining tensors and cutting them into parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from .. import backend, dtypes
from ..errors import ArgumentError, ShapeError, describe
from . import indexing, primitive
from .numpy_names import renamed
from .primitive import Op, check_same_device
from .shape import atleast, axis_of, shape_of, unsqueeze


class _Cat(Op):
    """Joins along an axis; the gradient is cut at the same places."""

    name = "cat"

    @staticmethod
    def forward(*arrays: Any, axis: int, sizes: list[int]) -> Any:
        """The arrays, joined; `sizes` are their lengths along the axis."""
        return backend.namespace(arrays[0]).concatenate(arrays, axis=axis)

    def backward(self, node: Any, g: Any, saved: Any) -> Any:
        axis, sizes = node.params["axis"], node.params["sizes"]
        out, start = [], 0
        for size in sizes:
            out.append(narrow(g, axis, start, size))
            start += size
        return out


_CAT = _Cat()


def cat(tensors: Sequence[Any], dim: int = 0, **names: Any) -> Any:
    """Joins tensors along the axis `dim`; 1-d empty tensors are skipped, as in PyTorch.

    Raises:
        ShapeError: No tensors, or the other axes differ.
    """
    if names:
        return renamed(cat, locals())
    tensors = list(tensors)
    if not tensors:
        raise ShapeError("cat: at least one tensor is needed. Got an empty list.")
    raw = not isinstance(tensors[0], primitive.Tensor)
    kept = [x for x in tensors if shape_of(x) != (0,)] or tensors[:1]
    first = shape_of(kept[0])
    if not first:
        raise ShapeError("cat: 0-d tensors cannot be joined. Use stack.")
    axis = axis_of("cat", len(first), dim)
    for i, x in enumerate(kept):
        s = shape_of(x)
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
        target = reduce(dtypes.promote_types, [x.dtype for x in kept])
        kept = [primitive.cast(x, target.numpy) for x in kept]
    check_same_device("cat", kept)
    arrays = [x._array for x in kept]
    params: dict[str, Any] = {"axis": axis, "sizes": [a.shape[axis] for a in arrays]}
    return primitive.finish(_CAT, _CAT.forward(*arrays, **params), tuple(kept), params)


def stack(tensors: Sequence[Any], dim: int = 0, **names: Any) -> Any:
    """Joins tensors of one shape along a new axis.

    Raises:
        ShapeError: No tensors, or their shapes differ.
    """
    if names:
        return renamed(stack, locals())
    tensors = list(tensors)
    if not tensors:
        raise ShapeError("stack: at least one tensor is needed. Got an empty list.")
    for i, x in enumerate(tensors):
        if shape_of(x) != shape_of(tensors[0]):
            raise ShapeError(
                f"stack: all shapes must be equal. Got {describe(tensors[0])} and, at position "
                f"{i}, {describe(x)}."
            )
    if shape_of(tensors[0]) == (0,):
        return cat([unsqueeze(x, dim) for x in tensors], axis_of("stack", 2, dim))
    return cat(
        [unsqueeze(x, dim) for x in tensors], axis_of("stack", len(shape_of(tensors[0])) + 1, dim)
    )


def narrow(input: Any, dim: int, start: int, length: int) -> Any:
    """The elements `start` to `start + length` along `dim`, as a view.

    Raises:
        ShapeError: The range leaves the tensor.
    """
    shape = shape_of(input)
    axis = axis_of("narrow", len(shape), dim)
    start, length = int(start), int(length)
    start = start + shape[axis] if start < 0 else start
    if length < 0 or start < 0 or start + length > shape[axis]:
        raise ShapeError(
            f"narrow: start + length must be at most {shape[axis]}, the length of axis {axis} of "
            f"{describe(input)}. Got {start} + {length}."
        )
    index = (*(slice(None),) * axis, slice(start, start + length), Ellipsis)
    return indexing.SLICE(input, index=index, source=shape)


def select(input: Any, dim: int, index: int) -> Any:
    """The slice at `index` along `dim`; the axis disappears."""
    axis = axis_of("select", len(shape_of(input)), dim)
    return input[(slice(None),) * axis + (index,)]


def split(
    tensor: Any, split_size_or_sections: int | Sequence[int], dim: int = 0
) -> tuple[Any, ...]:
    """Cuts along `dim` into parts of one size (the last may be smaller), or of the given sizes.

    Raises:
        ShapeError: The sizes do not sum to the length of the axis.
    """
    shape = shape_of(tensor)
    axis = axis_of("split", len(shape), dim)
    length = shape[axis]
    if isinstance(split_size_or_sections, int):
        size = split_size_or_sections
        if size < 0 or (size == 0 and length):
            raise ArgumentError(f"split: the size must be positive. Got {size}.")
        before, starts = (slice(None),) * axis, range(0, length, size) if length else [0]
        places = [(*before, slice(s, min(s + size, length)), Ellipsis) for s in starts]
        return tuple([indexing.SLICE(tensor, index=place, source=shape) for place in places])
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


def chunk(input: Any, chunks: int, dim: int = 0, **names: Any) -> tuple[Any, ...]:
    """Cuts along `dim` into at most `chunks` parts of one size; the last may be smaller."""
    if names:
        return renamed(chunk, locals())
    if chunks < 1:
        raise ArgumentError(f"chunk: the number of parts must be at least 1. Got {chunks}.")
    length = shape_of(input)[axis_of("chunk", len(shape_of(input)), dim)]
    if not length:
        return split(input, [0] * chunks, dim)
    return split(input, max(-(-length // chunks), 1), dim)


def unbind(input: Any, dim: int = 0, **names: Any) -> tuple[Any, ...]:
    """All slices along `dim`."""
    if names:
        return renamed(unbind, locals())
    axis = axis_of("unbind", len(shape_of(input)), dim)
    return tuple(select(input, axis, i) for i in range(shape_of(input)[axis]))


def hstack(tensors: Sequence[Any]) -> Any:
    """Joins along axis 1 (axis 0 for vectors)."""
    tensors = [atleast(x, 1) for x in tensors]
    return cat(tensors, 0 if len(shape_of(tensors[0])) == 1 else 1)


def vstack(tensors: Sequence[Any]) -> Any:
    """Joins along axis 0; vectors become rows."""
    return cat([atleast(x, 2) for x in tensors], 0)


concat = concatenate = cat
