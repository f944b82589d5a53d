"""Maximum pooling over three axes, in parallel over the planes of a batch.

For each window the number of the winning element within it is kept, in the order of the memory: two
bytes instead of a position of eight. Images have one element on the first axis.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numba import njit, prange

from .compile import inlined, kernel

NONE = 65535  # the number of an element that does not exist


@inlined
def _challenge(best, winner, source, step, element):  # type: ignore[no-untyped-def]
    """Writes what is greater, or NaN, or first. Without branches it becomes vector code."""
    for b in range(len(best)):
        value, old = source[b * step], best[b]
        wins = (value > old) | ((value != value) & (old == old)) | (winner[b] == NONE)
        best[b] = value if wins else old
        winner[b] = element if wins else winner[b]


@njit(error_model="numpy")
def _max_plane(x, y, winners, numbers):  # type: ignore[no-untyped-def]
    depth, height, width = x.shape
    kd, kh, kw, sd, sh, sw, front, top, left, dd, dh, dw = numbers
    for e in range(y.shape[0]):
        for a in range(y.shape[1]):
            best, winner = y[e, a], winners[e, a]
            best[:] = -np.inf
            winner[:] = NONE
            for k in range(kd * kh * kw):
                z = e * sd + k // (kh * kw) * dd - front
                r = a * sh + k // kw % kh * dh - top
                if z < 0 or z >= depth or r < 0 or r >= height:
                    continue
                offset = k % kw * dw - left
                first = max(0, -(offset // sw))
                last = max(first, min(len(best), (width - 1 - offset) // sw + 1))
                source = x[z, r, first * sw + offset :]
                reached, places = best[first:last], winner[first:last]
                if sw == 1:
                    _challenge(reached, places, source, 1, np.uint16(k))
                elif sw == 2:
                    _challenge(reached, places, source, 2, np.uint16(k))
                else:
                    _challenge(reached, places, source, sw, np.uint16(k))


@kernel()
def _max_pool(x, y, winners, numbers):  # type: ignore[no-untyped-def]
    for p in prange(len(x)):
        _max_plane(x[p], y[p], winners[p], numbers)


@njit(error_model="numpy")
def _spread_plane(g, winners, out, offsets, numbers):  # type: ignore[no-untyped-def]
    start, first, second, third = numbers
    out[:] = 0
    for e in range(g.shape[0]):
        for a in range(g.shape[1]):
            at = start + e * first + a * second
            for b in range(g.shape[2]):
                if winners[e, a, b] != NONE:
                    out[at + b * third + offsets[winners[e, a, b]]] += g[e, a, b]


@kernel()
def _spread(g, winners, dx, offsets, numbers):  # type: ignore[no-untyped-def]
    for p in prange(len(g)):
        _spread_plane(g[p], winners[p], dx[p], offsets, numbers)


def _three(values: tuple[int, ...], filler: int) -> tuple[int, ...]:
    return (filler,) * (3 - len(values)) + tuple(map(int, values))


def _planes(a: Any) -> Any:
    """x_NC… as planes with three axes."""
    shape = (a.shape[0] * a.shape[1], *_three(a.shape[2:], 1))
    return np.ascontiguousarray(a).reshape(shape)


def max_pool(x: Any, window: Any, *outputs: int) -> tuple[Any, Any]:
    """The maxima of the windows of x_NC…, and which of a window's elements they are, uint16."""
    y = np.empty((*x.shape[:2], *outputs), x.dtype)
    winners = np.empty(y.shape, np.uint16)
    settings = zip(
        (window.kernel, window.stride, window.low, window.dilation), (1, 1, 0, 1), strict=True
    )
    numbers = tuple(number for values, filler in settings for number in _three(values, filler))
    _max_pool(_planes(x), _planes(y), _planes(winners), numbers)
    return y, winners


def max_pool_backward(g: Any, winners: Any, window: Any, size: tuple[int, ...]) -> Any:
    """The gradient of images of the given size: each g goes to the element that won."""
    dx = np.empty((*g.shape[:2], *size), g.dtype)
    lines = [math.prod(size[axis + 1 :]) for axis in range(len(size))]
    ranges = (range(k) for k in window.kernel)
    offsets = np.array(list(itertools.product(*ranges))) @ np.multiply(lines, window.dilation)
    start = -int(np.dot(lines, window.low))
    numbers = (start, *_three(np.multiply(lines, window.stride), 0))
    _spread(_planes(g), _planes(winners), dx.reshape(len(g) * g.shape[1], -1), offsets, numbers)
    return dx
