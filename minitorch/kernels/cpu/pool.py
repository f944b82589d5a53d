"""Maximum pooling, in parallel over the planes of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from .compile import kernel


@kernel()
def _max_pool(x, y, index, kh, kw, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    planes, h, w = x.shape
    oh, ow = y.shape[1], y.shape[2]
    for p in prange(planes):
        source = x[p]
        for a in range(oh):
            for b in range(ow):
                top, start = a * sh - t, b * sw - left
                best, place = source[0, 0], -1
                for i in range(kh):
                    r = top + i * dh
                    if r < 0 or r >= h:
                        continue
                    for j in range(kw):
                        q = start + j * dw
                        if q < 0 or q >= w:
                            continue
                        value = source[r, q]
                        if place < 0 or value > best or (value != value and best == best):
                            best, place = value, r * w + q
                y[p, a, b] = best
                index[p, a, b] = place


@kernel()
def _spread(g, index, dx):  # type: ignore[no-untyped-def]
    for p in prange(g.shape[0]):
        for k in range(g.shape[1]):
            dx[p, index[p, k]] += g[p, k]


def max_pool(x: Any, window: Any, oh: int, ow: int) -> tuple[Any, Any]:
    """The maxima of the windows of x_NCHW and their flat positions in the planes."""
    (kh, kw), (sh, sw), (t, left), _, (dh, dw) = window
    n, c, h, w = x.shape
    y = np.empty((n, c, oh, ow), x.dtype)
    index = np.empty((n, c, oh, ow), np.int64)
    flat = np.ascontiguousarray(x).reshape(n * c, h, w)
    planes = (n * c, oh, ow)
    _max_pool(flat, y.reshape(planes), index.reshape(planes), kh, kw, sh, sw, t, left, dh, dw)
    return y, index


def max_pool_backward(g: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of the images: each g goes to the position that won."""
    n, c, h, w = shape
    oh, ow = g.shape[2:]
    dx = np.zeros(shape, g.dtype)
    flat = np.ascontiguousarray(g).reshape(n * c, oh * ow)
    _spread(flat, index.reshape(n * c, oh * ow), dx.reshape(n * c, h * w))
    return dx
