"""batch_norm: sums over the channels of x_NCL, and what is done to each number of a channel.

Gradients are summed in float64; numbers that statistics are made of a part of a plane at a time in
their own type, the parts in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel

_PART = 1024  # numbers that are summed in their own type, by 32 sums


@kernel(fastmath=FAST)
def _statistics(first, last, x, mean, var):  # type: ignore[no-untyped-def]
    n, _, length = x.shape
    for c in range(first, last):
        centre, square = 0.0, 0.0
        for i in range(n):
            total, squares = 0.0, 0.0
            for begin in range(0, length, _PART):
                xs, part = x[i, c, begin : begin + _PART], x.dtype.type(0)
                for k in range(len(xs)):
                    part += xs[k]
                total += part
            middle = x.dtype.type(total / length)
            for begin in range(0, length, _PART):
                xs, part = x[i, c, begin : begin + _PART], x.dtype.type(0)
                for k in range(len(xs)):
                    part += (xs[k] - middle) * (xs[k] - middle)
                squares += part
            # What was summed so far and this plane, each around its own mean.
            away = middle - centre
            centre += away / (i + 1)
            square += squares + away * away * (length * (i / (i + 1)))
        mean[c] = centre
        var[c] = square / (n * length)


@kernel()
def _move(first, last, mean, var, running_mean, running_var, keep, share, unbiased):  # type: ignore[no-untyped-def]
    for c in range(first, last):
        running_mean[c] = running_mean[c] * keep + mean[c] * share
        running_var[c] = running_var[c] * keep + var[c] * unbiased * share


@kernel(fastmath=FAST)
def _normalise(first, last, x, mean, var, weight, bias, eps, y, rstd):  # type: ignore[no-untyped-def]
    channels, one = x.shape[1], x.dtype.type(1)
    for p in range(first, last):
        i, c = p // channels, p % channels
        root = one / np.sqrt(var[c] + eps)
        scale = root * weight[c] if len(weight) else root
        shift = -mean[c] * scale
        if len(bias):
            shift += bias[c]
        if i == 0:
            rstd[c] = root
        source, out = x[i, c], y[i, c]
        for k in range(len(out)):
            out[k] = source[k] * scale + shift


@kernel(fastmath=FAST)
def _plane_sums(first, last, g, x, mean, sums):  # type: ignore[no-untyped-def]
    """The sums of g and of g·(x - mean) over each plane."""
    channels = x.shape[1]
    for p in range(first, last):
        i, c = p // channels, p % channels
        gs, xs, m, sum_g, sum_gx = g[i, c], x[i, c], mean[c], 0.0, 0.0
        for k in range(len(gs)):
            sum_g += gs[k]
            sum_gx += gs[k] * (xs[k] - m)
        sums[i, c, 0], sums[i, c, 1] = sum_g, sum_gx


@kernel(fastmath=FAST)
def _channel_gradients(first, last, sums, rstd, weight, length, dw, db, slopes):  # type: ignore[no-untyped-def]
    """dx = s·(g - mean_g - x̂·mean_gx̂) = slopes_2·g + slopes_0·(x - m) + slopes_1"""
    for c in range(first, last):
        scale = rstd[c] * weight[c] if len(weight) else rstd[c]
        sum_g, sum_gx = 0.0, 0.0
        for i in range(len(sums)):
            sum_g += sums[i, c, 0]
            sum_gx += sums[i, c, 1]
        db[c], dw[c] = sum_g, sum_gx * rstd[c]
        slopes[c, 0] = -scale * dw[c] * rstd[c] / (len(sums) * length)
        slopes[c, 1] = -scale * db[c] / (len(sums) * length)
        slopes[c, 2] = scale


# Apart from the sums and image by image: the planes of a channel lie so that a cache cannot hold
# them, and what is read in order comes from the next cache in time.
@kernel(fastmath=FAST)
def _input_gradient(first, last, g, x, mean, slopes, training, dx):  # type: ignore[no-untyped-def]
    channels = x.shape[1]
    for p in range(first, last):
        i, c = p // channels, p % channels
        gs, xs, out, s = g[i, c], x[i, c], dx[i, c], slopes[c, 2]
        m, slope, shift = mean[c], slopes[c, 0], slopes[c, 1]
        if training:
            for k in range(len(out)):
                out[k] = s * gs[k] + (slope * (xs[k] - m) + shift)
        else:
            for k in range(len(out)):
                out[k] = s * gs[k]


def channel_statistics(x: Any) -> tuple[Any, Any]:
    """Mean and biased variance of each channel of x_NCL."""
    x = np.ascontiguousarray(x)
    mean, var = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    _statistics(x.shape[1], x, mean, var)
    return mean, var


def move(mean: Any, var: Any, running_mean: Any, running_var: Any, share: float, n: int) -> None:
    """`running += share · (value - running)`, with the unbiased variance of n numbers."""
    number = mean.dtype.type
    factors = (number(1 - share), number(share), number(n / max(1, n - 1)))
    _move(len(mean), mean, var, running_mean, running_var, *factors)


_NONE = {kind: np.empty(0, kind) for kind in "fd"}


def _line(a: Any, kind: str) -> Any:
    return _NONE[kind] if a is None else np.ascontiguousarray(a)


def normalise(x: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: float) -> tuple[Any, Any]:
    """Normalised x_NCL, and `1 / sqrt(var + eps)`; weight and bias may be None."""
    x, dtype = np.ascontiguousarray(x), x.dtype
    y, rstd = np.empty(x.shape, dtype), np.empty(x.shape[1], dtype)
    lines = [_line(a, dtype.char) for a in (mean, var, weight, bias)]
    _normalise(x.shape[0] * x.shape[1], x, *lines, dtype.type(eps), y, rstd)
    return y, rstd


def batch_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, weight: Any, training: bool
) -> tuple[Any, Any, Any]:
    """The gradients of x_NCL, weight and bias."""
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    n, channels, length = x.shape
    sums, slopes = np.empty((n, channels, 2)), np.empty((channels, 3), x.dtype)
    dx = np.empty(x.shape, x.dtype)
    dw, db = np.empty(channels, x.dtype), np.empty(channels, x.dtype)
    mean, weight = _line(mean, x.dtype.char), _line(weight, x.dtype.char)
    _plane_sums(n * channels, g, x, mean, sums)
    _channel_gradients(channels, sums, rstd, weight, length, dw, db, slopes)
    _input_gradient(n * channels, g, x, mean, slopes, training, dx)
    return dx, dw, db
