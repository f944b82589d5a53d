"""batch_norm: sums over the channels of x_NCL, and what is done to each number of a channel.

A channel's numbers are summed in float64, plane by plane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel


@kernel(fastmath=FAST)
def _statistics(first, last, x, mean, var):  # type: ignore[no-untyped-def]
    n, _, length = x.shape
    for c in range(first, last):
        centre, square = 0.0, 0.0
        for i in range(n):
            plane = x[i, c]
            total = 0.0
            for k in range(length):
                total += plane[k]
            middle = x.dtype.type(total / length)
            part = 0.0
            for k in range(length):
                part += (plane[k] - middle) * (plane[k] - middle)
            # What was summed so far and this plane, each around its own mean.
            away = middle - centre
            centre += away / (i + 1)
            square += part + away * away * (length * (i / (i + 1)))
        mean[c] = centre
        var[c] = square / (n * length)


@kernel(fastmath=FAST)
def _affine(first, last, x, scale, shift, y):  # type: ignore[no-untyped-def]
    channels = x.shape[1]
    for p in range(first, last):
        i, c = p // channels, p % channels
        a, b, source, out = scale[c], shift[c], x[i, c], y[i, c]
        for k in range(len(out)):
            out[k] = source[k] * a + b


@kernel(fastmath=FAST)
def _backward(first, last, g, x, mean, rstd, scale, training, dx, dw, db):  # type: ignore[no-untyped-def]
    n, _, length = x.shape
    for c in range(first, last):
        m, r, s = mean[c], rstd[c], scale[c]
        sum_g, sum_gx = 0.0, 0.0
        for i in range(n):
            gs, xs = g[i, c], x[i, c]
            part_g, part_gx = 0.0, 0.0
            for k in range(length):
                part_g += gs[k]
                part_gx += gs[k] * (xs[k] - m)
            sum_g += part_g
            sum_gx += part_gx
        db[c] = sum_g
        dw[c] = sum_gx * r
        if training:
            # dx = s·(g - mean_g - x̂·mean_gx̂) = s·g + slope·(x - m) + shift
            slope = x.dtype.type(-s * dw[c] * r / (n * length))
            shift = x.dtype.type(-s * db[c] / (n * length))
            for i in range(n):
                gs, xs, out = g[i, c], x[i, c], dx[i, c]
                for k in range(length):
                    out[k] = s * gs[k] + (slope * (xs[k] - m) + shift)
        else:
            for i in range(n):
                gs, out = g[i, c], dx[i, c]
                for k in range(length):
                    out[k] = s * gs[k]


def channel_statistics(x: Any) -> tuple[Any, Any]:
    """Mean and biased variance of each channel of x_NCL."""
    x = np.ascontiguousarray(x)
    mean, var = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    _statistics(x.shape[1], x, mean, var)
    return mean, var


def channel_affine(x: Any, scale: Any, shift: Any) -> Any:
    """x_NCL · scale_C + shift_C."""
    x = np.ascontiguousarray(x)
    y = np.empty(x.shape, x.dtype)
    _affine(x.shape[0] * x.shape[1], x, scale, shift, y)
    return y


def batch_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, scale: Any, training: bool
) -> tuple[Any, Any, Any]:
    """The gradients of x_NCL, weight and bias."""
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    dx = np.empty(x.shape, x.dtype)
    dw, db = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    _backward(x.shape[1], g, x, mean, rstd, scale, training, dx, dw, db)
    return dx, dw, db
