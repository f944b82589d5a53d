"""Pooling. Averages are products with constant matrices; maxima are a choice of elements.

Shapes: x_NCHW. An average over windows is separable, `y = R x Cᵀ` with one row of R for each row of
the output, and this covers padding, ceil_mode and adaptive sizes alike.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend
from ..kernels import load_for
from .families import nondiff
from .fused import Fused
from .primitive import Primitive
from .unfold import Window, padded, taps
from .wide import wide


def _index_array(x: Any, *, window: Window) -> Any:
    kernels = load_for("pool", x)
    if kernels is not None:
        return kernels.max_pool(x, window, *window.output(*x.shape[2:]))[1]
    return _maxima(x, window)[1]


def _maxima(x: Any, window: Window) -> tuple[Any, Any]:
    xp, (h, w) = backend.namespace(x), x.shape[2:]
    oh, ow = window.output(h, w)
    source = padded(x, window, _lowest(x.dtype))
    plane = padded(xp.arange(h * w).reshape(1, 1, h, w), window, -1)
    best: Any = None
    index: Any = None
    for _, _, rows, columns in taps(window, oh, ow):
        values, places = source[:, :, rows, columns], plane[:, :, rows, columns]
        if best is None:
            best, index = values.copy(), xp.broadcast_to(places, values.shape).copy()
            continue
        # An element of the padding never wins, even over -inf.
        wins = ((values > best) | ((values != values) & (best == best)) | (index < 0)) & (
            places >= 0
        )
        best = xp.where(wins, values, best)
        index = xp.where(wins, places, index)
    return best, index


def _lowest(dtype: Any) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


_INDICES = nondiff("max_pool_indices", _index_array)


def max_pool_indices(x: Any, *, window: Window) -> Any:
    """Flat position in its plane of the first maximum (or NaN) of each window, int64."""
    return _INDICES(x, window=window)


def _max_definition(x: Any, *, window: Window) -> Any:
    index = max_pool_indices(x.detach(), window=window)
    n, c, oh, ow = index.shape
    return x.reshape(n, c, -1).gather(2, index.reshape(n, c, -1)).reshape(n, c, oh, ow)


def _max_forward(x: Any, *, window: Window) -> tuple[Any, tuple[Any, ...]]:
    kernels = load_for("pool", x)
    if kernels is not None:
        y, index = kernels.max_pool(x, window, *window.output(*x.shape[2:]))
    else:
        y, index = _maxima(x, window)
    return y, (index,)


def _max_backward(
    g: Any, needs: Sequence[bool], residuals: tuple[Any, ...], x: Any, *, window: Window
) -> list[Any]:
    index = residuals[0]
    kernels = load_for("pool", g)
    if kernels is not None:
        return [kernels.max_pool_backward(g, index, x.shape)]
    xp, (n, c, h, w) = backend.namespace(g), x.shape
    dx = xp.zeros((n * c, h * w), g.dtype)
    rows, flat = xp.arange(n * c).reshape(n * c, 1), (n * c, math.prod(g.shape[2:]))
    xp.add.at(dx, (rows, index.reshape(flat)), g.reshape(flat))
    return [dx.reshape(x.shape)]


max_pool = Fused(
    _max_definition,
    _max_forward,
    _max_backward,
    supports=lambda x, *, window: True,
)
max_pool.name = "max_pool"


def _average_array(x: Any, *, rows: Any, columns: Any) -> Any:
    """R x Cᵀ for the last two axes."""
    xp, a = backend.namespace(x), wide(x)
    (n, c, h, w), (oh, ow) = a.shape, (len(rows), len(columns))
    y = xp.matmul(a.reshape(n * c * h, w), _constant(columns.T, a)).reshape(n * c, h, ow)
    y = xp.matmul(_constant(rows, a), y).reshape(n, c, oh, ow)
    return y.astype(x.dtype, copy=False)


def _constant(weights: np.ndarray, a: Any) -> Any:
    """`weights` with the dtype and on the device of `a`."""
    if type(a) is np.ndarray:
        return weights.astype(a.dtype, copy=False)
    return _sent(weights.tobytes(), weights.shape, a.dtype, backend.of(a), backend.device_of(a))


@functools.lru_cache(maxsize=128)
def _sent(values: bytes, shape: tuple[int, ...], dtype: Any, library: Any, where: Any) -> Any:
    """A small matrix on a GPU, sent once and kept for the steps that follow."""
    weights = np.frombuffer(values, np.float64).reshape(shape)
    return library.from_host(weights.astype(dtype), where.index)


def _average_rule(g: Any, *, rows: Any, columns: Any) -> Any:
    return average(g, rows=rows.T, columns=columns.T)


average = Primitive("avg_pool", _average_array, (_average_rule,))
"""`average(x, *, rows, columns)` with NumPy matrices rows_OH×H and columns_OW×W."""


@functools.lru_cache(256)
def window_weights(
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    outputs: int,
    count_include_pad: bool,
    divisor: int | None,
) -> np.ndarray:
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
    weights = np.zeros((outputs, size))
    for i in range(outputs):
        start = i * stride - padding
        stop = min(start + kernel, size + padding)
        count = stop - start if count_include_pad else min(stop, size) - max(start, 0)
        weights[i, max(start, 0) : min(stop, size)] = 1 / (divisor or count)
    weights.setflags(write=False)
    return weights


@functools.lru_cache(256)
def adaptive_weights(size: int, outputs: int) -> np.ndarray:
    """The matrix of one axis of adaptive_avg_pool: windows from ⌊i·n/m⌋ to ⌈(i+1)·n/m⌉."""
    weights = np.zeros((outputs, size))
    for i in range(outputs):
        start, stop = i * size // outputs, -(-(i + 1) * size // outputs)
        weights[i, start:stop] = 1 / (stop - start)
    weights.setflags(write=False)
    return weights


__all__ = ["adaptive_weights", "average", "max_pool", "max_pool_indices", "window_weights"]
