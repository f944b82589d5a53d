"""Convolution of each channel on its own, in parallel over planes; no patches are made.

Shapes: x_NCHW, w_OKK and y_NOHW with O a multiple of C; output o looks at channel o // (O / C).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel


@kernel(fastmath=FAST)
def _forward(first_plane, last_plane, x, w, y, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    _, c, height, width = x.shape
    o, kh, kw = w.shape
    oh, ow = y.shape[2], y.shape[3]
    for p in range(first_plane, last_plane):
        i, k = p // o, p % o
        out, source = y[i, k], x[i, k // (o // c)]
        out[:] = 0
        for u in range(kh):
            for v in range(kw):
                factor, offset = w[k, u, v], v * dw - left
                first = max(0, -(offset // sw))
                last = max(first, min(ow, (width - 1 - offset) // sw + 1))
                for a in range(oh):
                    r = a * sh + u * dh - t
                    if r < 0 or r >= height:
                        continue
                    line, row = out[a, first:last], source[r, first * sw + offset :]
                    if sw == 1:
                        for b in range(len(line)):
                            line[b] += factor * row[b]
                    else:
                        for b in range(len(line)):
                            line[b] += factor * row[b * sw]


@kernel(fastmath=FAST)
def _input_gradient(first_plane, last_plane, g, w, dx, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    _, c, height, width = dx.shape
    o, kh, kw = w.shape
    oh, ow = g.shape[2], g.shape[3]
    for p in range(first_plane, last_plane):
        i, ch = p // c, p % c
        out = dx[i, ch]
        out[:] = 0
        for k in range(ch * (o // c), (ch + 1) * (o // c)):
            for u in range(kh):
                for v in range(kw):
                    factor, offset = w[k, u, v], v * dw - left
                    first = max(0, -(offset // sw))
                    last = max(first, min(ow, (width - 1 - offset) // sw + 1))
                    for a in range(oh):
                        r = a * sh + u * dh - t
                        if r < 0 or r >= height:
                            continue
                        line, row = out[r, first * sw + offset :], g[i, k, a, first:last]
                        if sw == 1:
                            for b in range(len(row)):
                                line[b] += factor * row[b]
                        else:
                            for b in range(len(row)):
                                line[b * sw] += factor * row[b]


@kernel(fastmath=FAST)
def _weight_gradient(first_output, last_output, g, x, dweight, sh, sw, t, left, dh, dw):  # type: ignore[no-untyped-def]
    n, c, height, width = x.shape
    o, kh, kw = dweight.shape
    oh, ow = g.shape[2], g.shape[3]
    for k in range(first_output, last_output):
        for u in range(kh):
            for v in range(kw):
                offset = v * dw - left
                first = max(0, -(offset // sw))
                last = max(first, min(ow, (width - 1 - offset) // sw + 1))
                total = 0.0
                for i in range(n):
                    for a in range(oh):
                        r = a * sh + u * dh - t
                        if r < 0 or r >= height:
                            continue
                        row = x[i, k // (o // c), r, first * sw + offset :]
                        line = g[i, k, a, first:last]
                        part = dweight[k, u, v] * 0
                        if sw == 1:
                            for b in range(len(line)):
                                part += line[b] * row[b]
                        else:
                            for b in range(len(line)):
                                part += line[b] * row[b * sw]
                        total += part
                dweight[k, u, v] = total


def _numbers(window: Any) -> tuple[int, ...]:
    _, (sh, sw), (t, left), _, (dh, dw) = window
    return sh, sw, t, left, dh, dw


def forward(x: Any, w: Any, window: Any, outputs: tuple[int, int]) -> Any:
    """y_NOHW."""
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w[:, 0])
    y = np.empty((len(x), len(w), *outputs), x.dtype)
    _forward(len(x) * len(w), x, w, y, *_numbers(window))
    return y


def input_gradient(g: Any, w: Any, window: Any, channels: int, size: tuple[int, int]) -> Any:
    """The gradient of x_NCHW."""
    g, w = np.ascontiguousarray(g), np.ascontiguousarray(w[:, 0])
    dx = np.empty((len(g), channels, *size), g.dtype)
    _input_gradient(len(g) * channels, g, w, dx, *_numbers(window))
    return dx


def weight_gradient(g: Any, x: Any, window: Any) -> Any:
    """The gradient of the weight, w_O1KK."""
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    dw = np.zeros((g.shape[1], *window.kernel), g.dtype)
    _weight_gradient(len(dw), g, x, dw, *_numbers(window))
    return dw[:, None]
