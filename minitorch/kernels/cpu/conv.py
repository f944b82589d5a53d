"""Convolution with stride 1 without patches; and patches of images and back.

The padded planes of an image lie behind each other in one line, so an element of the window is an
offset into that line, and a whole output plane is one long sum of shifted lines. The few values
between the rows that belong to no output are computed and left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from .compile import FAST, kernel

_TAPS = 8  # shifted lines added in one pass: as many as fit the registers


@kernel(fastmath=FAST)
def _direct(x, weight, offsets, bias, y, width, per_group, step):  # type: ignore[no-untyped-def]
    n, o, oh, ow = y.shape
    length = oh * width - (width - ow)
    for job in prange(n * o):
        m, k = job // o, job % o
        total = np.empty(length, x.dtype)
        total[:] = bias[k]
        line = x[m, k // per_group * step :]
        for t in range(0, offsets.size, _TAPS):
            a, b = line[offsets[t] :], line[offsets[t + 1] :]
            c, d = line[offsets[t + 2] :], line[offsets[t + 3] :]
            e, f = line[offsets[t + 4] :], line[offsets[t + 5] :]
            g, h = line[offsets[t + 6] :], line[offsets[t + 7] :]
            wa, wb, wc, wd = weight[k, t], weight[k, t + 1], weight[k, t + 2], weight[k, t + 3]
            we, wf, wg, wh = weight[k, t + 4], weight[k, t + 5], weight[k, t + 6], weight[k, t + 7]
            for p in range(length):
                total[p] += (wa * a[p] + wb * b[p] + wc * c[p] + wd * d[p]) + (
                    we * e[p] + wf * f[p] + wg * g[p] + wh * h[p]
                )
        for r in range(oh):
            y[m, k, r] = total[r * width : r * width + ow]


@kernel()
def _patches(x, cols, kh, kw, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    n, c, h, w = x.shape
    oh, ow = cols.shape[4], cols.shape[5]
    for row in prange(c * kh * kw):
        ch, i, j = row // (kh * kw), row // kw % kh, row % kw
        offset = j * dw - left
        first = max(0, -(offset // sw))
        last = min(ow, (w - 1 - offset) // sw + 1)
        for m in range(n):
            for a in range(oh):
                y = a * sh + i * dh - t
                out = cols[ch, i, j, m, a]
                if y < 0 or y >= h or last <= first:
                    out[:] = 0
                    continue
                out[:first] = 0
                out[last:] = 0
                source = x[m, ch, y]
                if sw == 1:
                    for b in range(first, last):
                        out[b] = source[b + offset]
                else:
                    for b in range(first, last):
                        out[b] = source[b * sw + offset]


@kernel()
def _add_patches(out, cols, kh, kw, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    n, c, h, w = out.shape
    oh, ow = cols.shape[4], cols.shape[5]
    for plane in prange(n * c):
        m, ch = plane // c, plane % c
        for i in range(kh):
            for j in range(kw):
                offset = j * dw - left
                first = max(0, -(offset // sw))
                last = min(ow, (w - 1 - offset) // sw + 1)
                for a in range(oh):
                    y = a * sh + i * dh - t
                    if y < 0 or y >= h:
                        continue
                    target = out[m, ch, y]
                    source = cols[ch, i, j, m, a]
                    if sw == 1:
                        for b in range(first, last):
                            target[b + offset] += source[b]
                    else:
                        for b in range(first, last):
                            target[b * sw + offset] += source[b]


def direct(x: Any, weight: Any, bias: Any, window: Any, groups: int) -> Any:
    """The convolution with stride 1 of images that are padded already.

    Args:
        x: f[N, C, H, W].
        weight: f[O, C / groups, KH, KW].
        bias: f[O] or None.
        window: Its kernel and dilation are used.
        groups: Number of groups.
    """
    (n, c, h, w), (o, per, kh, kw) = x.shape, weight.shape
    dh, dw = window.dilation
    oh, ow = h - dh * (kh - 1), w - dw * (kw - 1)
    taps = per * kh * kw
    offsets = np.zeros(-(-taps // _TAPS) * _TAPS, np.int64)
    places = np.arange(per)[:, None, None] * (h * w)
    places = places + np.arange(kh)[:, None] * (dh * w) + np.arange(kw) * dw
    offsets[:taps] = places.ravel()
    flat = np.zeros((o, offsets.size), x.dtype)
    flat[:, :taps] = weight.reshape(o, taps)
    bias = np.zeros(o, x.dtype) if bias is None else np.ascontiguousarray(bias, x.dtype)
    y = np.empty((n, o, oh, ow), x.dtype)
    line = np.ascontiguousarray(x).reshape(n, c * h * w)
    _direct(line, flat, offsets, bias, y, w, o // groups, per * h * w)
    return y


def patches(x: Any, window: Any, oh: int, ow: int, room: Any) -> Any:
    """The patches of x_NCHW as c·kh·kw rows of n·oh·ow values, in the memory `room`."""
    (kh, kw), (sh, sw), (t, left), _, (dh, dw) = window
    n, c = x.shape[:2]
    cols = room[: c * kh * kw * n * oh * ow].reshape(c, kh, kw, n, oh, ow)
    _patches(x, cols, kh, kw, sh, sw, t, left, dh, dw)
    return cols.reshape(c * kh * kw, n * oh * ow)


def add_patches(out: Any, cols: Any, window: Any, oh: int, ow: int) -> None:
    """Adds patches to the images `out`, in place."""
    (kh, kw), (sh, sw), (t, left), _, (dh, dw) = window
    n, c = out.shape[:2]
    cols = cols.reshape(c, kh, kw, n, oh, ow)
    _add_patches(out, cols, kh, kw, sh, sw, t, left, dh, dw)
