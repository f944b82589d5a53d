"""Operations on shape that few programs use: windows, repeats, corners, stacks and cuts."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import creation, joining, ordering, primitive, shape
from .numpy_names import renamed
from .primitive import Primitive, wrap

# ---- windows and repeats -------------------------------------------------------------------------


def unfold(input: Any, dimension: int, size: int, step: int) -> Any:
    """All windows of `size` elements along an axis, `step` apart, on a new last axis (a copy).

    Args:
        input: Tensor.
        dimension: The axis.
        size: Length of a window.
        step: Distance between the starts of two windows.

    Returns:
        Tensor whose axis `dimension` counts the windows, with one more axis of length `size`.

    Raises:
        ArgumentError: The size does not fit or the step is not positive.
    """
    lengths = shape.shape_of(input)
    axis = shape.axis_of("unfold", len(lengths), dimension)
    length = lengths[axis] if lengths else 1
    if not 0 <= size <= length:
        raise ArgumentError(
            f"unfold: size must be from 0 to {length}, the length of axis {axis} of "
            f"{describe(input)}. Got {size}."
        )
    if step <= 0:
        raise ArgumentError(f"unfold: step must be positive. Got {step}.")
    if not lengths:
        return shape.reshape(input, 1)[:size]
    count = (length - size) // step + 1
    xp = backend.namespace(input._array)
    positions = xp.arange(count)[:, None] * step + xp.arange(size)[None, :]
    windows = input[(slice(None),) * axis + (wrap(positions),)]
    return shape.movedim(windows, axis + 1, -1)


def repeat_interleave(
    input: Any,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
    **names: Any,
) -> Any:
    """Repeats each element, or each slice along `dim`; flat where no axis is named.

    Args:
        input: Tensor; alone, the int64 counts whose numbers 0, 1, … are repeated.
        repeats: How often: a number, or int64 with one count per slice.
        dim: The axis.
        output_size: The length of the result, which spares a wait for the device.

    Raises:
        ShapeError: There are not as many counts as slices.
        ArgumentError: A count is negative.
    """
    if names:
        return renamed(repeat_interleave, locals())
    if repeats is None:
        return _repeated_positions(input, input.shape[0], output_size)
    if dim is None:
        input, dim = shape.reshape(input, (input.numel(),)), 0
    lengths = shape.shape_of(input)
    axis = shape.axis_of("repeat_interleave", len(lengths), dim)
    if isinstance(repeats, primitive.Tensor) and repeats.numel() == 1:
        repeats = int(repeats.item())
    if not isinstance(repeats, primitive.Tensor):
        if repeats < 0:
            raise ArgumentError(f"repeat_interleave: repeats must not be negative. Got {repeats}.")
        spread = shape.unsqueeze(input, axis + 1)
        target = lengths[: axis + 1] + (repeats,) + lengths[axis + 1 :]
        whole = lengths[:axis] + (lengths[axis] * repeats,) + lengths[axis + 1 :]
        return shape.reshape(shape.broadcast_to(spread, target), whole)
    index = _repeated_positions(repeats, lengths[axis], output_size)
    return input[(slice(None),) * axis + (index,)]


def _repeated_positions(repeats: Any, length: int, total: int | None) -> Any:
    """Position i as often as `repeats[i]` says: int64."""
    counts = repeats._array
    if counts.dtype.kind not in "iu" or counts.ndim != 1:
        raise DtypeError(
            f"repeat_interleave: repeats must be an int64 vector. Got {describe(repeats)}."
        )
    if counts.shape[0] != length:
        raise ShapeError(
            f"repeat_interleave: one count per slice is needed, {length}. Got {describe(repeats)}."
        )
    if counts.size and type(counts) is np.ndarray and counts.min() < 0:
        raise ArgumentError(f"repeat_interleave: repeats must not be negative. Got {counts.min()}.")
    xp = backend.namespace(counts)
    ends = counts.cumsum()
    size = (int(ends[-1]) if counts.size else 0) if total is None else total
    return wrap(xp.searchsorted(ends, xp.arange(size), side="right").astype(np.int64, copy=False))


# ---- turns and mirrors ---------------------------------------------------------------------------


def rot90(input: Any, k: int = 1, dims: Sequence[int] = (0, 1)) -> Any:
    """Turns the plane of two axes by `k` quarter turns.

    Raises:
        ArgumentError: Not two different axes.
    """
    if len(dims) != 2:
        raise ArgumentError(f"rot90: two axes are needed. Got dims={tuple(dims)}.")
    i, j = (shape.axis_of("rot90", input.ndim, d) for d in dims)
    if i == j or input.ndim < 2:
        raise ArgumentError(
            f"rot90: two different axes are needed. Got dims={tuple(dims)} for {describe(input)}."
        )
    k %= 4
    if k == 0:
        return input.clone()
    if k == 2:
        return shape.flip(input, (i, j))
    if k == 1:
        return shape.transpose(shape.flip(input, (j,)), i, j)
    return shape.flip(shape.transpose(input, i, j), (j,))


def fliplr(input: Any) -> Any:
    """The axis 1 reversed.

    Raises:
        ShapeError: Fewer than two axes.
    """
    if input.ndim < 2:
        raise ShapeError(f"fliplr: at least 2 axes are needed. Got {describe(input)}.")
    return shape.flip(input, 1)


def flipud(input: Any) -> Any:
    """The axis 0 reversed.

    Raises:
        ShapeError: No axis.
    """
    if input.ndim < 1:
        raise ShapeError(f"flipud: at least 1 axis is needed. Got {describe(input)}.")
    return shape.flip(input, 0)


# ---- stacks --------------------------------------------------------------------------------------


def _each(function: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], tuple | list):
        return tuple(function(x) for x in tensors[0])
    if len(tensors) == 1:
        return function(tensors[0])
    return tuple(function(x) for x in tensors)


def atleast_1d(*tensors: Any) -> Any:
    """Each tensor with at least one axis."""
    return _each(lambda x: shape.atleast(x, 1), tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Each tensor with at least two axes; new ones come first."""
    return _each(lambda x: shape.atleast(x, 2), tensors)


def _at_least_three(x: Any) -> Any:
    return x if x.ndim > 2 else shape.unsqueeze(shape.atleast(x, 2), -1)


def atleast_3d(*tensors: Any) -> Any:
    """Each tensor with at least three axes, as (1, n, 1) and (m, n, 1)."""
    return _each(_at_least_three, tensors)


def dstack(tensors: Sequence[Any]) -> Any:
    """Joins along axis 2."""
    return joining.cat([_at_least_three(x) for x in tensors], 2)


def column_stack(tensors: Sequence[Any]) -> Any:
    """Joins along axis 1; vectors become columns."""
    return joining.cat([x if x.ndim > 1 else shape.reshape(x, (x.numel(), 1)) for x in tensors], 1)


row_stack = joining.vstack


def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal, 0 elsewhere; vectors are rows.

    Raises:
        ShapeError: More than two axes.
    """
    for x in tensors:
        if x.ndim > 2:
            raise ShapeError(f"block_diag: at most 2 axes are allowed. Got {describe(x)}.")
    blocks = [shape.atleast(x, 2) for x in tensors]
    width = sum(x.shape[1] for x in blocks)
    rows, left = [], 0
    for x in blocks:
        right = width - left - x.shape[1]
        rows.append(shape.pad_constant(x, ((0, 0), (left, right))))
        left += x.shape[1]
    return joining.cat(rows, 0)


def cartesian_prod(*tensors: Any) -> Any:
    """Every combination of one element from each vector, as rows."""
    if len(tensors) == 1:
        return tensors[0]
    grids = creation.meshgrid(*tensors)
    return joining.stack([shape.reshape(g, (g.numel(),)) for g in grids], -1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Every choice of `r` elements of a vector, in order, as rows."""
    import itertools

    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.shape[0]), r)), dtype=np.int64)
    return input[wrap(backend.transfer(rows.reshape(-1, r), input.device))]


# ---- cuts ----------------------------------------------------------------------------------------


def tensor_split(input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[Any, ...]:
    """Cuts along `dim` into nearly equal parts, or at the given positions.

    Raises:
        ArgumentError: The number of parts is not positive.
    """
    if not input.ndim:
        raise ShapeError("tensor_split: at least 1 axis is needed. Got a 0-d tensor.")
    axis = shape.axis_of("tensor_split", input.ndim, dim)
    length = input.shape[axis]
    if isinstance(indices_or_sections, primitive.Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int):
        parts = indices_or_sections
        if parts < 1:
            raise ArgumentError(f"tensor_split: at least one part is needed. Got {parts}.")
        small, larger = divmod(length, parts)
        edges = [i * small + min(i, larger) for i in range(1, parts)]
    else:
        edges = [operator.index(n) for n in indices_or_sections]
    bounds = [0, *edges, length]
    return tuple(
        input[(slice(None),) * axis + (slice(start, stop),)]
        for start, stop in zip(bounds, bounds[1:], strict=False)
    )


def _axis_split(name: str, least: int) -> Any:
    def call(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
        if input.ndim < least:
            raise ShapeError(f"{name}: at least {least} axes are needed. Got {describe(input)}.")
        axis = {"vsplit": 0, "dsplit": 2}.get(name, min(input.ndim - 1, 1))
        length = input.shape[axis]
        if isinstance(indices_or_sections, int) and (
            indices_or_sections < 1 or length % indices_or_sections
        ):
            raise ArgumentError(
                f"{name}: the parts must be equal: {length} elements along axis {axis} of "
                f"{describe(input)}. Got {indices_or_sections} parts. Use tensor_split."
            )
        return tensor_split(input, indices_or_sections, axis)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Cuts into equal parts, or at positions, along the axis of `{name[0]}stack`."
    return call


hsplit, vsplit, dsplit = (
    _axis_split("hsplit", 1),
    _axis_split("vsplit", 2),
    _axis_split("dsplit", 3),
)


def split_with_sizes(input: Any, split_sizes: Sequence[int], dim: int = 0) -> tuple[Any, ...]:
    """Cuts along `dim` into parts of the given sizes."""
    return joining.split(input, list(split_sizes), dim)


# ---- diagonals and triangles ---------------------------------------------------------------------


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices in the axes `dim1` and `dim2` with the last axis of `input` on their diagonal.

    Raises:
        ShapeError: Both axes are one.
    """
    ndim = input.ndim + 1
    i, j = (shape.axis_of("diag_embed", ndim, d) for d in (dim1, dim2))
    if i == j:
        raise ShapeError(f"diag_embed: dim1 and dim2 must differ. Got {dim1} and {dim2}.")
    size = input.shape[-1] + abs(offset)
    rest = list(input.shape[:-1])
    for axis in sorted((i, j)):
        rest.insert(axis, size)
    return ordering.on_diagonal(input, offset=offset, dims=(i, j), source=tuple(rest))


def diagflat(input: Any, offset: int = 0) -> Any:
    """A matrix with all elements of `input` on its diagonal."""
    return ordering.diag(shape.reshape(input, (input.numel(),)), offset)


def _triangle_indices(name: str, row: int, col: int, offset: int, dtype: Any, device: Any) -> Any:
    if row < 0 or col < 0:
        raise ArgumentError(f"{name}: sizes must not be negative. Got {row} and {col}.")
    i, j = np.arange(row)[:, None], np.arange(col)[None, :]
    inside = j - i <= offset if name == "tril_indices" else j - i >= offset
    found = np.stack(np.nonzero(inside)).astype(dtypes.of(dtype or dtypes.int64).numpy)
    return creation.tensor(found, device=device)


def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
) -> Any:
    """The positions int64[2, n] of the lower triangle, row by row."""
    return _triangle_indices("tril_indices", row, col, offset, dtype, device)


def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
) -> Any:
    """The positions int64[2, n] of the upper triangle, row by row."""
    return _triangle_indices("triu_indices", row, col, offset, dtype, device)


def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Positions in a flat tensor as one position per axis of `shape`.

    Raises:
        ArgumentError: A position is outside.
    """
    a = indices._array
    total = math.prod(shape)
    if a.size and type(a) is np.ndarray and not (-total <= a.min() and a.max() < total):
        raise ArgumentError(
            f"unravel_index: positions must be below {total}, the elements of {tuple(shape)}. "
            f"Got {a.min()} to {a.max()}."
        )
    out = []
    for size in reversed(tuple(shape)):
        out.append(wrap(a % size))
        a = a // size
    return tuple(reversed(out))


# ---- memory --------------------------------------------------------------------------------------


def _strided_forward(a: Any, *, positions: Any, size: Any, steps: Any, start: int) -> Any:
    if type(a) is not np.ndarray:
        return a.reshape(-1)[backend.transfer(positions, backend.device_of(a))]
    strides = tuple(step * a.itemsize for step in steps)
    return np.ndarray(size, a.dtype, a, start * a.itemsize, strides)


def _strided_rule(g: Any, a: Any, *, positions: Any, **options: Any) -> Any:
    from .indexing import put_back

    flat = math.prod(shape.shape_of(a))
    index = (backend.transfer(positions, backend.device_of(primitive.raw(g))),)
    return shape.reshape(put_back(g, index=index, source=(flat,)), shape.shape_of(a))


_AS_STRIDED = Primitive("as_strided", _strided_forward, (_strided_rule,), (0,), view=True)


def as_strided(
    input: Any, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Any:
    """The memory of a contiguous tensor seen with other sizes and steps (a copy on a GPU).

    Raises:
        ShapeError: The tensor is not contiguous, or the view leaves its memory.
    """
    a = input._array
    size, steps = shape.sizes_of((size,)), shape.sizes_of((stride,))
    if len(size) != len(steps):
        raise ShapeError(f"as_strided: one step per size is needed. Got {size} and {steps}.")
    if not a.flags.c_contiguous:
        raise ShapeError(
            f"as_strided: the tensor must be contiguous. Got {describe(input)} with strides "
            f"{input.stride()}. Call .contiguous() first."
        )
    start = 0 if storage_offset is None else storage_offset - storage_offset_of(input)
    last = start + sum((n - 1) * s for n, s in zip(size, steps, strict=True))
    if math.prod(size) and (start < 0 or min(steps, default=0) < 0 or last >= a.size):
        raise ShapeError(
            f"as_strided: positions must be from 0 to {a.size - 1}, the memory of "
            f"{describe(input)}. Got {start} to {last}."
        )
    positions = np.full(size, start)
    for axis, (n, s) in enumerate(zip(size, steps, strict=True)):
        positions = positions + (np.arange(n) * s).reshape((-1,) + (1,) * (len(size) - axis - 1))
    return _AS_STRIDED(input, positions=positions, size=size, steps=steps, start=start)


def storage_offset_of(input: Any) -> int:
    """How many elements of the memory come before the first element of the tensor."""
    a = input._array
    base = a
    while backend.is_array(getattr(base, "base", None)):
        base = base.base
    if type(a) is np.ndarray:
        return int((a.ctypes.data - base.ctypes.data) // a.itemsize)
    return int((a.data.ptr - base.data.ptr) // a.itemsize)


def storage_offset(input: Any) -> int:
    """How many elements of the memory come before the first element of the tensor."""
    return storage_offset_of(input)


swapdims = shape.transpose
narrow_copy = joining.narrow
