"""Maxima over windows: a choice of elements of x_NC…; averages are in `resample.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend
from ..kernels import load_for
from .families import nondiff
from .fused import Fused
from .unfold import Window, padded, taps

_WINNER = np.dtype(np.uint16)  # what compiled bodies keep of a window, instead of a position


def _index_array(x: Any, *, window: Window) -> Any:
    kernels = _kernels(x, window)
    if kernels is None:
        return _maxima(x, window)[1]
    winners = kernels.max_pool(x, window, *window.output(*x.shape[2:]))[1]
    return _positions(winners, window, x.shape[2:])


def _kernels(x: Any, window: Window) -> Any:
    few = math.prod(window.kernel) < np.iinfo(_WINNER).max
    return load_for("pool", x) if few and len(window.kernel) <= 3 else None


def _positions(winners: Any, window: Window, size: Sequence[int]) -> Any:
    """The flat positions in their planes of the numbered elements of windows."""
    index, element = 0, winners.astype(np.int64)
    for axis in reversed(range(len(size))):
        step = math.prod(size[axis + 1 :])
        start = np.arange(winners.shape[2 + axis]) * window.stride[axis] - window.low[axis]
        start = start.reshape(-1, *[1] * (len(size) - 1 - axis))
        element, place = np.divmod(element, window.kernel[axis])
        index = index + (start + place * window.dilation[axis]) * step
    return index


def _maxima(x: Any, window: Window) -> tuple[Any, Any]:
    xp, sizes = backend.namespace(x), x.shape[2:]
    outputs = window.output(*sizes)
    source = padded(x, window, _lowest(x.dtype))
    plane = padded(xp.arange(math.prod(sizes)).reshape(1, 1, *sizes), window, -1)
    best: Any = None
    index: Any = None
    for _, under in taps(window, outputs):
        values, places = source[(..., *under)], plane[(..., *under)]
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
    return picked(x, max_pool_indices(x.detach(), window=window))


def _max_forward(x: Any, *, window: Window) -> tuple[Any, tuple[Any, ...]]:
    kernels = _kernels(x, window)
    if kernels is not None:
        y, index = kernels.max_pool(x, window, *window.output(*x.shape[2:]))
    else:
        y, index = _maxima(x, window)
    return y, (index,)


def _max_backward(
    g: Any, needs: Sequence[bool], residuals: tuple[Any, ...], x: Any, *, window: Window
) -> list[Any]:
    index = residuals[0]
    if index.dtype == _WINNER:
        kernels = _kernels(g, window)
        if kernels is not None:
            return [kernels.max_pool_backward(g, index, window, x.shape[2:])]
        index = _positions(index, window, x.shape[2:])
    xp, planes = backend.namespace(g), math.prod(x.shape[:2])
    dx = xp.zeros((planes, math.prod(x.shape[2:])), g.dtype)
    rows, flat = xp.arange(planes).reshape(planes, 1), (planes, math.prod(g.shape[2:]))
    xp.add.at(dx, (rows, index.reshape(flat)), g.reshape(flat))
    return [dx.reshape(x.shape)]


max_pool = Fused(
    _max_definition,
    _max_forward,
    _max_backward,
)
max_pool.name = "max_pool"


def adaptive_windows(size: int, outputs: int) -> tuple[tuple[int, int], ...]:
    """(start, stop) of the windows that divide an axis: from ⌊i·n/m⌋ to ⌈(i+1)·n/m⌉."""
    ends = range(outputs)
    return tuple((i * size // outputs, -(-(i + 1) * size // outputs)) for i in ends)


def _windowed_maxima(x: Any, *, windows: tuple[tuple[tuple[int, int], ...], ...]) -> Any:
    """Flat positions of the first maxima of x_NC… in windows given for each axis.

    Axis by axis, the last one first: the winner of a window is the first of the winners of its
    parts, so that the order of equal elements is that of the memory.
    """
    xp = backend.namespace(x)
    sizes = x.shape[2:]
    place = xp.broadcast_to(xp.arange(math.prod(sizes)).reshape(sizes), x.shape)
    for axis in reversed(range(len(sizes))):
        x, place = _best_along(xp, x, place, 2 + axis, windows[axis])
    return xp.ascontiguousarray(place)


def _best_along(xp: Any, x: Any, place: Any, axis: int, windows: Any) -> tuple[Any, Any]:
    best: Any = None
    found: Any = None
    for i in range(max(stop - start for start, stop in windows)):
        # A window that is over meets its last element again, which cannot win a second time.
        at = xp.asarray([min(start + i, stop - 1) for start, stop in windows])
        values, places = xp.take(x, at, axis), xp.take(place, at, axis)
        if best is None:
            best, found = values, places
            continue
        wins = (values > best) | ((values != values) & (best == best))
        best, found = xp.where(wins, values, best), xp.where(wins, places, found)
    return best, found


_WINDOWED = nondiff("windowed_max_indices", _windowed_maxima)


def windowed_max(x: Any, *, windows: tuple[tuple[tuple[int, int], ...], ...]) -> tuple[Any, Any]:
    """Maxima of x_NC… in windows that may differ in size, and their flat positions."""
    index = _WINDOWED(x.detach(), windows=windows)
    return picked(x, index), index


def picked(x: Any, index: Any) -> Any:
    """The elements of x_NC… at the flat positions index_NC… of their planes."""
    n, c = index.shape[:2]
    flat, rest = index.reshape(n, c, math.prod(index.shape[2:])), tuple(index.shape[2:])
    return x.reshape(n, c, math.prod(x.shape[2:])).gather(2, flat).reshape(n, c, *rest)
