"""Values of images at places between pixels, in parallel over planes.

Shapes: x_NCHW, grid_NP2 with (x, y), y_NCP. Each place has four corners, in the order left top,
right top, left bottom, right bottom; a corner outside has the position -1 and counts as 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from .kernel import kernel

PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


@njit(cache=True, error_model="numpy")
def _located(v, size, padding, corners):  # type: ignore[no-untyped-def]
    """The position of a coordinate from -1 to 1, and its slope."""
    slope = (size - 1) / 2 if corners else size / 2
    place = (v + 1) * slope if corners else (v + 1) * slope - 0.5
    if padding == 2:
        low = 0.0 if corners else -0.5
        span = size - 1.0 if corners else size + 0.0
        if span <= 0:
            return 0.0, 0.0
        away = place - low
        if away < 0:
            away, slope = -away, -slope
        flips = np.floor(away / span)
        rest = away - flips * span
        if flips % 2 == 0:
            place = low + rest
        else:
            place, slope = low + span - rest, -slope
    if padding >= 1:
        if not place > 0:
            return 0.0, 0.0
        if not place < size - 1:
            return size - 1.0, 0.0
    return place, slope


@kernel()
def _corners(first, last, grid, index, share, slope, h, w, padding, corners, nearest):  # type: ignore[no-untyped-def]
    places = grid.shape[1]
    for i in range(first, last):
        for p in range(places):
            x, dx = _located(grid[i, p, 0], w, padding, corners)
            y, dy = _located(grid[i, p, 1], h, padding, corners)
            for k in range(4):
                index[i, k, p] = -1
            share[i, 0, p] = share[i, 1, p] = 0
            slope[i, 0, p] = slope[i, 1, p] = 0
            if not (x > -1 and x < w and y > -1 and y < h):
                continue
            if nearest:
                a, b = int(np.rint(x)), int(np.rint(y))
                if a >= 0 and a < w and b >= 0 and b < h:
                    index[i, 0, p] = b * w + a
                continue
            a, b = int(np.floor(x)), int(np.floor(y))
            share[i, 0, p], share[i, 1, p] = x - a, y - b
            slope[i, 0, p], slope[i, 1, p] = dx, dy
            for k in range(4):
                u, v = a + k % 2, b + k // 2
                if u >= 0 and u < w and v >= 0 and v < h:
                    index[i, k, p] = v * w + u


@kernel()
def _sample(first, last, x, index, share, y):  # type: ignore[no-untyped-def]
    _, c, places = y.shape
    for plane in range(first, last):
        i, source = plane // c, x[plane // c, plane % c]
        out = y[i, plane % c]
        for p in range(places):
            s, t = share[i, 0, p], share[i, 1, p]
            zero = s * 0
            one = 1 - zero
            i0, i1, i2, i3 = index[i, 0, p], index[i, 1, p], index[i, 2, p], index[i, 3, p]
            a = source[i0] if i0 >= 0 else zero
            b = source[i1] if i1 >= 0 else zero
            e = source[i2] if i2 >= 0 else zero
            f = source[i3] if i3 >= 0 else zero
            out[p] = (a * (one - s) + b * s) * (one - t) + (e * (one - s) + f * s) * t


@kernel()
def _image_gradient(first, last, g, index, share, dx):  # type: ignore[no-untyped-def]
    _, c, places = g.shape
    for plane in range(first, last):
        i, out = plane // c, dx[plane // c, plane % c]
        for p in range(places):
            value = g[i, plane % c, p]
            s, t = share[i, 0, p], share[i, 1, p]
            for k in range(4):
                at = index[i, k, p]
                if at >= 0:
                    across = s if k % 2 else 1 - s
                    down = t if k // 2 else 1 - t
                    out[at] += value * across * down


@kernel()
def _grid_gradient(first, last, g, x, index, share, slope, dgrid):  # type: ignore[no-untyped-def]
    _, c, places = g.shape
    for i in range(first, last):
        dgrid[i] = 0
        for ch in range(c):
            source = x[i, ch]
            for p in range(places):
                s, t, value = share[i, 0, p], share[i, 1, p], g[i, ch, p]
                zero = s * 0
                i0, i1, i2, i3 = index[i, 0, p], index[i, 1, p], index[i, 2, p], index[i, 3, p]
                a = source[i0] if i0 >= 0 else zero
                b = source[i1] if i1 >= 0 else zero
                e = source[i2] if i2 >= 0 else zero
                f = source[i3] if i3 >= 0 else zero
                dgrid[i, p, 0] += value * ((b - a) * (1 - t) + (f - e) * t)
                dgrid[i, p, 1] += value * ((e - a) * (1 - s) + (f - b) * s)
        for p in range(places):
            dgrid[i, p, 0] *= slope[i, 0, p]
            dgrid[i, p, 1] *= slope[i, 1, p]


def sample(x: Any, grid: Any, nearest: bool, padding: str, corners: bool) -> tuple[Any, Any]:
    """y_NCHW, and what the gradients need."""
    n, c, h, w = x.shape
    _, oh, ow, _ = grid.shape
    flat = np.ascontiguousarray(grid).reshape(n, oh * ow, 2)
    index = np.empty((n, 4, oh * ow), np.int64)
    share, slope = np.empty((n, 2, oh * ow), x.dtype), np.empty((n, 2, oh * ow), x.dtype)
    _corners(n, flat, index, share, slope, h, w, PADDINGS[padding], corners, nearest)
    y = np.empty((n, c, oh * ow), x.dtype)
    _sample(n * c, np.ascontiguousarray(x).reshape(n, c, h * w), index, share, y)
    return y.reshape(n, c, oh, ow), (index, share, slope)


def image_gradient(g: Any, found: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of x_NCHW."""
    index, share, _ = found
    n, c, h, w = shape
    dx = np.zeros((n, c, h * w), g.dtype)
    _image_gradient(n * c, np.ascontiguousarray(g).reshape(n, c, -1), index, share, dx)
    return dx.reshape(shape)


def grid_gradient(g: Any, x: Any, found: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of the grid."""
    index, share, slope = found
    n, c = x.shape[:2]
    dgrid = np.empty((n, g.shape[2] * g.shape[3], 2), g.dtype)
    g, x = np.ascontiguousarray(g).reshape(n, c, -1), np.ascontiguousarray(x).reshape(n, c, -1)
    _grid_gradient(n, g, x, index, share, slope, dgrid)
    return dgrid.reshape(shape)
