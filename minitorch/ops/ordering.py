"""Order, classes and diagonals: operations that find positions, or read and write by them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, IndexRangeError, ShapeError, describe
from . import joining, shape
from .families import need_real
from .indexing import gather
from .numpy_names import renamed
from .primitive import Primitive, wrap


class Sorted(NamedTuple):
    """Values in order and where they were."""

    values: Any
    indices: Any


def argsort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, **names: Any
) -> Any:
    """The positions (int64) that sort `input` along `dim`; equal elements keep their order."""
    if names:
        return renamed(argsort, locals())
    a = input._array
    need_real("argsort", a)
    if not a.ndim:
        return input.new_zeros((), dtype=dtypes.int64)
    axis = shape.axis_of("argsort", a.ndim, dim)
    xp = backend.namespace(a)
    if a.dtype.kind == "V":  # bfloat16 has no order with NaN in NumPy
        a = a.astype(np.float32)
    if not descending:
        return wrap(xp.argsort(a, axis=axis, kind="stable"))
    flipped = xp.argsort(xp.flip(a, axis), axis=axis, kind="stable")
    return wrap(xp.flip(a.shape[axis] - 1 - flipped, axis).copy())


def sort(
    input: Any, dim: int = -1, descending: bool = False, stable: bool = False, **names: Any
) -> Sorted:
    """`(values, indices)` in order along `dim`; equal elements keep their order."""
    if names:
        return renamed(sort, locals())
    indices = argsort(input, dim, descending)
    return Sorted(gather(input, dim, indices) if input.ndim else input.clone(), indices)


def topk(
    input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, **names: Any
) -> Sorted:
    """The `k` largest (or smallest) elements along `dim` in order, and where they are.

    Raises:
        ArgumentError: `k` is negative or larger than the axis.
    """
    if names:
        return renamed(topk, locals())
    axis = shape.axis_of("topk", input.ndim, dim)
    length = input._array.shape[axis] if input.ndim else 1
    if not 0 <= k <= length:
        raise ArgumentError(
            f"topk: k must be from 0 to {length}, the length of axis {axis} of {describe(input)}. "
            f"Got {k}."
        )
    indices = (
        joining.narrow(argsort(input, axis, largest), axis, 0, k)
        if input.ndim
        else (argsort(input))
    )
    return Sorted(gather(input, axis, indices) if input.ndim else input.clone(), indices)


def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """int64[..., num_classes] with a 1 at each class number.

    Raises:
        DtypeError: The classes are not integers.
        IndexRangeError: A class is outside.
    """
    a = tensor._array
    if a.dtype.kind not in "iu":
        raise DtypeError(f"one_hot: classes must be int64. Got {describe(tensor)}. Use .long().")
    if num_classes < 0:
        num_classes = int(a.max()) + 1 if a.size else 0
    elif (
        a.size and type(a) is np.ndarray and not (0 <= int(a.min()) and int(a.max()) < num_classes)
    ):
        raise IndexRangeError(
            f"one_hot: classes must be from 0 to {num_classes - 1}. "
            f"Got {int(a.min())} to {int(a.max())}."
        )
    xp = backend.namespace(a)
    return wrap((a[..., None] == xp.arange(num_classes)).astype(np.int64))


def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements (or slices along `dim`) in order; each NaN is distinct."""
    xp = backend.namespace(input._array)
    found = xp.unique(
        input._array,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=dim,
        equal_nan=False,
    )
    if not isinstance(found, tuple):
        return wrap(found)
    out = [wrap(part) for part in found]
    if return_inverse and dim is None:
        out[1] = out[1].reshape(input.shape)
    return tuple(out)


_DIAGONAL = Primitive(
    "diagonal",
    lambda a, *, offset, dims, source: _writable_diagonal(a, offset, dims),
    (lambda g, *, offset, dims, source: on_diagonal(g, offset=offset, dims=dims, source=source),),
    view=True,
)


def _writable_diagonal(a: Any, offset: int, dims: tuple[int, int]) -> Any:
    """`a.diagonal(...)` as a view that can be written (NumPy's cannot)."""
    view = a.diagonal(offset, *dims)
    if type(a) is np.ndarray and a.flags.writeable:
        view.flags.writeable = True
    return view


def _on_diagonal_forward(g: Any, *, offset: int, dims: tuple[int, int], source: Any) -> Any:
    out = backend.namespace(g).zeros(source, dtype=g.dtype)
    _writable_diagonal(out, offset, dims)[...] = g
    return out


on_diagonal = Primitive(
    "on_diagonal",
    _on_diagonal_forward,
    (lambda g, *, offset, dims, source: _DIAGONAL(g, offset=offset, dims=dims, source=source),),
)


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of the axes `dim1` and `dim2` as the last axis; a view."""
    ndim = input.ndim
    dims = (shape.axis_of("diagonal", ndim, dim1), shape.axis_of("diagonal", ndim, dim2))
    return _DIAGONAL(input, offset=offset, dims=dims, source=input._array.shape)


_diagonal_of = diagonal


def diag(input: Any, diagonal: int = 0) -> Any:
    """The diagonal of a matrix, or a matrix with the vector on its diagonal."""
    if input.ndim not in (1, 2):
        raise ShapeError(f"diag: 1 or 2 axes are needed. Got {describe(input)}. Use diagonal.")
    if input.ndim == 2:
        return _diagonal_of(input, diagonal)
    n = input.shape[0] + abs(diagonal)
    out = input.new_zeros((n, n))
    steps = backend.namespace(input._array).arange(input.shape[0])
    rows, columns = (wrap(steps + max(s, 0)) for s in (-diagonal, diagonal))
    out[rows, columns] = input
    return out
