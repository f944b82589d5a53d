"""Resampling: every output is a weighted sum of inputs along each axis, `y = R_1 ⊗ R_2 ⊗ … x`.

One constant matrix for each axis says it all: averages over windows, adaptive averages,
interpolation of every kind. The operation is linear, its gradient is itself with the matrices
transposed. A matrix with few entries in each row is applied as gather-and-weight, a dense one as a
matrix product.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .. import backend
from .primitive import Primitive
from .wide import wide

_DENSE_FROM = 1 / 6  # share of entries in a row from which the matrix product is quicker


class Weights:
    """A constant matrix_OI for one axis, compared by identity; make it in a cached function.

    Attributes:
        matrix: float64[O, I].
    """

    def __init__(self, matrix: np.ndarray, transposed: Weights | None = None) -> None:
        self.matrix = matrix
        self._transposed = transposed

    @property
    def T(self) -> Weights:
        """The weights of the gradient."""
        if self._transposed is None:
            self._transposed = Weights(np.ascontiguousarray(self.matrix.T), self)
        return self._transposed

    @functools.cached_property
    def terms(self) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """For each term of the sums: positions[O] and weights[O]; None where a product is better.

        Rows with fewer terms name their last one again, which then has a share of its weight: an
        added weight of 0 would make NaN of an infinite value.
        """
        used = self.matrix != 0
        counts = used.sum(1)
        count = int(counts.max(initial=0))
        if count > max(1, self.matrix.shape[1] * _DENSE_FROM):
            return None
        order = np.argsort(~used, axis=1, kind="stable")[:, :count]
        values = np.take_along_axis(self.matrix, order, 1)
        last = np.maximum(counts - 1, 0)[:, None]
        again = np.arange(count) >= last
        order = np.where(again, np.take_along_axis(order, last, 1), order)
        share = np.take_along_axis(values, last, 1) / (count - last)
        values = np.where(again, share, values)
        return [(order[:, i].copy(), values[:, i].copy()) for i in range(count)]

    @functools.cached_property
    def unused(self) -> np.ndarray:
        """The rows without an entry, which are 0 even where the others are not finite."""
        return np.flatnonzero(~(self.matrix != 0).any(1))

    @functools.cached_property
    def slices(self) -> list[slice | None]:
        """For each term: its positions as a slice, or None if they have no constant step."""
        found: list[slice | None] = []
        for places, _ in self.terms or []:
            steps = np.diff(places)
            even = len(places) > 1 and steps[0] > 0 and bool((steps == steps[0]).all())
            step = int(steps[0]) if even else 1
            found.append(slice(int(places[0]), int(places[-1]) + 1, step) if even else None)
        return found


def _resampled(x: Any, *, weights: tuple[Weights | None, ...]) -> Any:
    """`x` with the matrices applied to its last axes; None leaves an axis as it is."""
    y = wide(x)
    axes = range(x.ndim - len(weights), x.ndim)
    # Axes that shrink come first, so that the others have less to do.
    pairs = [(axis, w) for axis, w in zip(axes, weights, strict=True) if w is not None]
    for axis, w in sorted(pairs, key=lambda pair: _growth(pair[1])):
        y = _along(y, axis, w)
    return y.astype(x.dtype, copy=y is x or y.base is not None)


def _growth(weights: Weights) -> float:
    rows, columns = weights.matrix.shape
    return rows / max(1, columns)


def _along(a: Any, axis: int, weights: Weights) -> Any:
    terms = weights.terms
    if terms is None:
        return _product(a, axis, weights)
    xp = backend.namespace(a)
    shape = (-1,) + (1,) * (a.ndim - 1 - axis)
    total: Any = None
    for i, (places, values) in enumerate(terms):
        cut = weights.slices[i]
        if cut is not None:
            part = a[(slice(None),) * axis + (cut,)]
        else:
            part = xp.take(a, _on(a, weights, ("places", i), places, None), axis)
        if (values == values[0]).all():
            part = part * a.dtype.type(values[0]) if values[0] != 1 else part
        else:
            part = part * _on(a, weights, ("values", i), values, a.dtype).reshape(shape)
        if total is None:
            total = part.copy() if part.base is not None and len(terms) > 1 else part
        else:
            total += part
    if total is None:
        rows = weights.matrix.shape[0]
        return xp.zeros((*a.shape[:axis], rows, *a.shape[axis + 1 :]), a.dtype)
    if weights.unused.size:
        index = _on(a, weights, ("unused", 0), weights.unused, None)
        total[(slice(None),) * axis + (index,)] = 0
    return total


def _product(a: Any, axis: int, weights: Weights) -> Any:
    xp = backend.namespace(a)
    rows, columns = weights.matrix.shape
    before, after = a.shape[:axis], a.shape[axis + 1 :]
    if axis == a.ndim - 1:
        matrix = _on(a, weights, ("matrix", 1), weights.matrix.T, a.dtype)
        return xp.matmul(a.reshape(-1, columns), matrix).reshape(*before, rows)
    matrix = _on(a, weights, ("matrix", 0), weights.matrix, a.dtype)
    lead, rest = int(np.prod(before)), int(np.prod(after))
    return xp.matmul(matrix, a.reshape(lead, columns, rest)).reshape(*before, rows, *after)


@functools.lru_cache(maxsize=512)
def _sent(weights: Weights, key: tuple[str, int], dtype: Any, where: Any) -> Any:
    """A constant in the dtype and on the device that it is used on, sent once and kept."""
    name, i = key
    if name == "unused":
        values = weights.unused
    elif name == "matrix":
        values = weights.matrix.T if i else weights.matrix
    else:
        assert weights.terms is not None
        values = weights.terms[i][0 if name == "places" else 1]
    return backend.from_host(values if dtype is None else values.astype(dtype), where)


def _on(a: Any, weights: Weights, key: tuple[str, int], values: np.ndarray, dtype: Any) -> Any:
    if type(a) is np.ndarray:
        return values if dtype is None else values.astype(dtype, copy=False)
    return _sent(weights, key, dtype, backend.device_of(a))


def _rule(g: Any, *, weights: tuple[Weights | None, ...]) -> Any:
    return resample(g, weights=tuple(None if w is None else w.T for w in weights))


resample = Primitive("resample", _resampled, (_rule,))
"""`resample(x, *, weights)` with `Weights`, or None, for each of the last axes of x."""


@functools.lru_cache(512)
def window_weights(
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    outputs: int,
    count_include_pad: bool,
    divisor: int | None,
) -> Weights:
    """The matrix of one axis of avg_pool.

    Args:
        size: Length of the axis.
        kernel: Length of a window.
        stride: Step between windows.
        padding: Zeros on each side.
        outputs: Number of windows.
        count_include_pad: Whether padding counts in the divisor.
        divisor: Replaces the count of elements.
    """
    matrix = np.zeros((outputs, size))
    for i in range(outputs):
        start = i * stride - padding
        stop = min(start + kernel, size + padding)
        count = stop - start if count_include_pad else min(stop, size) - max(start, 0)
        if stop > 0 and start < size:
            matrix[i, max(start, 0) : min(stop, size)] = 1 / (divisor or max(count, 1))
    return Weights(matrix)


@functools.lru_cache(512)
def adaptive_weights(size: int, outputs: int) -> Weights:
    """The matrix of one axis of adaptive_avg_pool: windows from ⌊i·n/m⌋ to ⌈(i+1)·n/m⌉."""
    matrix = np.zeros((outputs, size))
    for i in range(outputs):
        start, stop = i * size // outputs, -(-(i + 1) * size // outputs)
        matrix[i, start:stop] = 1 / (stop - start)
    return Weights(matrix)
