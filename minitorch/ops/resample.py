"""Resampling: every output is a weighted sum of inputs along each axis, `y = R_1 ⊗ R_2 ⊗ … x`.

One constant matrix for each axis says it all: averages over windows, adaptive averages,
interpolation of every kind. The operation is linear, its gradient is itself with the matrices
transposed. On the CPU the last two axes have a kernel. Elsewhere a matrix with few entries in each
row is applied as gather-and-weight, a dense one as a matrix product.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend
from ..kernels import load_for
from .primitive import Primitive
from .wide import wide

# A product with the whole matrix is quicker from this share of entries in a row on. It multiplies
# infinite values by 0, which makes NaN of them, and so usual windows are never computed by it.
_DENSE_FROM = 1 / 6
_WINDOW = 8
_FEW = 16  # entries for each place up to which the kernel is quicker than a product
_VECTOR = 8  # numbers to a multiple of which lines of its tables are filled up


class Weights:
    """A constant sparse matrix_OI for one axis, compared by identity; make it in a cached function.

    Args:
        rows, columns, values: Its entries; several at one place are added.
        shape: (O, I).
    """

    def __init__(
        self,
        rows: np.ndarray,
        columns: np.ndarray,
        values: np.ndarray,
        shape: tuple[int, int],
        transposed: Weights | None = None,
    ) -> None:
        order = np.argsort(rows, kind="stable")
        self.rows, self.columns, self.values = rows[order], columns[order], values[order]
        self.shape = shape
        self._transposed = transposed

    @classmethod
    def of_ranges(
        cls, ranges: Sequence[tuple[int, int]], weights: Sequence[float], size: int
    ) -> Weights:
        """Row i has weights[i] from ranges[i][0] up to, without, ranges[i][1]."""
        spans = [range(start, stop) for start, stop in ranges]
        counts = [len(span) for span in spans]
        rows = np.repeat(np.arange(len(spans)), counts)
        columns = np.array([place for span in spans for place in span], np.int64)
        return cls(rows, columns, np.repeat(np.asarray(weights, float), counts), (len(spans), size))

    @property
    def T(self) -> Weights:
        """The weights of the gradient."""
        if self._transposed is None:
            size = (self.shape[1], self.shape[0])
            self._transposed = Weights(self.columns, self.rows, self.values, size, self)
        return self._transposed

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """float64[O, I]."""
        matrix = np.zeros(self.shape)
        np.add.at(matrix, (self.rows, self.columns), self.values)
        return matrix

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """The number of entries in each row."""
        return np.bincount(self.rows, minlength=self.shape[0])

    @functools.cached_property
    def terms(self) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """For each term of the sums: positions[O] and weights[O]; None where a product is better.

        Rows with fewer terms name their last one again, which then has a share of its weight: an
        added weight of 0 would make NaN of an infinite value.
        """
        counts = self.counts
        most = int(counts.max(initial=0))
        whole = int(counts.min(initial=0)) == self.shape[1]
        if whole or most > max(_WINDOW, self.shape[1] * _DENSE_FROM):
            return None
        first, last = np.cumsum(counts) - counts, np.maximum(counts - 1, 0)
        share = np.where(counts > 0, 1 / np.maximum(most - last, 1), 0)
        found = []
        for i in range(most):
            at = np.minimum(first + np.minimum(i, last), len(self.rows) - 1)
            found.append((self.columns[at], self.values[at] * np.where(i >= last, share, 1)))
        return found

    @property
    def is_sparse(self) -> bool:
        """Whether the kernel is expected to be quicker than a product."""
        whole = int(self.counts.min(initial=0)) == self.shape[1]
        return not whole and len(self.rows) <= _FEW * max(self.shape)

    @functools.cached_property
    def unused(self) -> np.ndarray:
        """The rows without an entry, which are 0 even where the others are not finite."""
        return np.flatnonzero(self.counts == 0)

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


@functools.lru_cache(512)
def _entries(weights: Weights, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each row starts among the entries, their columns, and values."""
    starts = np.concatenate([[0], np.cumsum(weights.counts)])
    return starts, weights.columns.astype(np.int32), weights.values.astype(dtype)


@functools.lru_cache(512)
def _terms(weights: Weights, dtype: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """How many rows, and columns and values of the i-th entry of each; columns end with none."""
    (wide, width), most = weights.shape, int(weights.counts.max(initial=0))
    size = (most, -(-wide // _VECTOR) * _VECTOR)
    places, values = np.full(size, width, np.int32), np.zeros(size, dtype)
    starts = np.cumsum(weights.counts) - weights.counts
    at = (np.arange(len(weights.rows)) - starts[weights.rows], weights.rows)
    places[at], values[at] = weights.columns, weights.values
    return wide, places, values


@functools.lru_cache(512)
def _unchanged(size: int) -> Weights:
    places = np.arange(size)
    return Weights(places, places, np.ones(size), (size, size))


def _last_two(a: Any, weights: tuple[Weights | None, ...]) -> Any:
    """The matrices of the last two axes applied by a kernel, or None."""
    known = [w for w in weights if w is not None]
    if not known or a.ndim < 2 or any(not w.is_sparse for w in known):
        return None
    kernels = load_for("resample", a)
    if kernels is None:
        return None
    sizes = a.shape[-2:]
    pairs = zip(sizes, (None,) * (2 - len(weights)) + weights, strict=True)
    down, across = (_unchanged(n) if w is None else w for n, w in pairs)
    planes = np.ascontiguousarray(a).reshape(-1, *sizes)
    y = kernels.resample(planes, _entries(down, a.dtype), _terms(across, a.dtype))
    return y.reshape(*a.shape[:-2], *y.shape[1:])


def _resampled(x: Any, *, weights: tuple[Weights | None, ...]) -> Any:
    """`x` with the matrices applied to its last axes; None leaves an axis as it is."""
    y, done = wide(x), 0
    last = _last_two(y, weights[-2:])
    if last is not None:
        y, done = last, min(2, len(weights))
    axes = range(x.ndim - len(weights), x.ndim - done)
    # Axes that shrink come first, so that the others have less to do.
    pairs = [(axis, w) for axis, w in zip(axes, weights, strict=False) if w is not None]
    for axis, w in sorted(pairs, key=lambda pair: _growth(pair[1])):
        y = _along(y, axis, w)
    return y.astype(x.dtype, copy=y is x or y.base is not None)


def _growth(weights: Weights) -> float:
    rows, columns = weights.shape
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
        rows = weights.shape[0]
        return xp.zeros((*a.shape[:axis], rows, *a.shape[axis + 1 :]), a.dtype)
    if weights.unused.size:
        index = _on(a, weights, ("unused", 0), weights.unused, None)
        total[(slice(None),) * axis + (index,)] = 0
    return total


def _product(a: Any, axis: int, weights: Weights) -> Any:
    xp = backend.namespace(a)
    rows, columns = weights.shape
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
    ranges, weights = [], []
    for i in range(outputs):
        start = i * stride - padding
        stop = min(start + kernel, size + padding)
        low, high = max(start, 0), min(stop, size)
        count = stop - start if count_include_pad else high - low
        ranges.append((low, max(low, high)))
        weights.append(1 / (divisor or max(count, 1)))
    return Weights.of_ranges(ranges, weights, size)


@functools.lru_cache(512)
def adaptive_weights(size: int, outputs: int) -> Weights:
    """The matrix of one axis of adaptive_avg_pool: windows from ⌊i·n/m⌋ to ⌈(i+1)·n/m⌉."""
    ends = range(outputs)
    ranges = [(i * size // outputs, -(-(i + 1) * size // outputs)) for i in ends]
    return Weights.of_ranges(ranges, [1 / (stop - start) for start, stop in ranges], size)
