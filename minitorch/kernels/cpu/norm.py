"""Row kernels: softmax, log_softmax, layer_norm; and channel kernels: batch_norm.

A row is a line of the last axis; rows are shared out with prange, so results do not depend on the
number of threads. float32 uses a polynomial for exp that the compiler turns into vector code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numba.extending import register_jitable

from .compile import FAST, kernel

_F = np.float32


@register_jitable
def exp_f32(x):  # type: ignore[no-untyped-def]
    """exp of a float32 that is at most 0, to 2 units in the last place.

    Source: S. L. Moshier, Cephes Mathematical Library, expf, 1992.
    """
    z = max(x, _F(-87.3))
    n = np.floor(z * _F(1.44269504) + _F(0.5))
    r = z - n * _F(0.693359375) + n * _F(2.12194440e-4)
    y = _F(1.9875691500e-4)
    y = y * r + _F(1.3981999507e-3)
    y = y * r + _F(8.3334519073e-3)
    y = y * r + _F(4.1665795894e-2)
    y = y * r + _F(1.6666665459e-1)
    y = y * r + _F(5.0000001201e-1)
    y = y * r * r + r + _F(1)
    y = y * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(_F)
    return y if x > _F(-87.3) else (_F(0) if x == x else x)


@kernel(fastmath=FAST)
def _softmax_f32(x, y, log):  # type: ignore[no-untyped-def]
    rows, n = x.shape
    for i in prange(rows):
        top = _F(-np.inf)
        for j in range(n):
            top = max(top, x[i, j])
        if top == _F(-np.inf):
            top = _F(0)
        total = _F(0)
        for j in range(n):
            e = exp_f32(x[i, j] - top)
            y[i, j] = e
            total += e
        if log:
            shift = top + _F(np.log(total))
            for j in range(n):
                y[i, j] = x[i, j] - shift
        else:
            for j in range(n):
                y[i, j] /= total


@kernel()
def _softmax_f64(x, y, log):  # type: ignore[no-untyped-def]
    rows, n = x.shape
    for i in prange(rows):
        top = -np.inf
        for j in range(n):
            top = max(top, x[i, j])
        if top == -np.inf:
            top = 0.0
        total = 0.0
        for j in range(n):
            y[i, j] = np.exp(x[i, j] - top)
            total += y[i, j]
        if log:
            shift = top + np.log(total)
            for j in range(n):
                y[i, j] = x[i, j] - shift
        else:
            for j in range(n):
                y[i, j] /= total


@kernel(fastmath=FAST)
def _softmax_backward(g, y, dx):  # type: ignore[no-untyped-def]
    rows, n = y.shape
    for i in prange(rows):
        dot = y[i, 0] * 0
        for j in range(n):
            dot += g[i, j] * y[i, j]
        for j in range(n):
            dx[i, j] = y[i, j] * (g[i, j] - dot)


@kernel(fastmath=FAST)
def _log_softmax_backward_f32(g, y, dx):  # type: ignore[no-untyped-def]
    rows, n = y.shape
    for i in prange(rows):
        total = _F(0)
        for j in range(n):
            total += g[i, j]
        for j in range(n):
            dx[i, j] = g[i, j] - exp_f32(y[i, j]) * total


@kernel()
def _log_softmax_backward_f64(g, y, dx):  # type: ignore[no-untyped-def]
    rows, n = y.shape
    for i in prange(rows):
        total = 0.0
        for j in range(n):
            total += g[i, j]
        for j in range(n):
            dx[i, j] = g[i, j] - np.exp(y[i, j]) * total


def _as_rows(a: Any) -> Any:
    return np.ascontiguousarray(a).reshape(-1, a.shape[-1])


def _softmax(x: Any, log: bool) -> Any:
    y = np.empty(x.shape, x.dtype)
    body = _softmax_f32 if x.dtype == np.float32 else _softmax_f64
    body(_as_rows(x), _as_rows(y), log)
    return y


def softmax(x: Any) -> Any:
    """softmax over the last axis."""
    return _softmax(x, False)


def log_softmax(x: Any) -> Any:
    """log_softmax over the last axis."""
    return _softmax(x, True)


def softmax_backward(g: Any, y: Any) -> Any:
    """The gradient of softmax with output y."""
    dx = np.empty(y.shape, y.dtype)
    _softmax_backward(_as_rows(g), _as_rows(y), _as_rows(dx))
    return dx


def log_softmax_backward(g: Any, y: Any) -> Any:
    """The gradient of log_softmax with output y."""
    dx = np.empty(y.shape, y.dtype)
    float32 = y.dtype == np.float32
    body = _log_softmax_backward_f32 if float32 else _log_softmax_backward_f64
    body(_as_rows(g), _as_rows(y), _as_rows(dx))
    return dx


_BLOCK = 32  # rows whose sums are formed together; fixed, so that sums do not depend on threads


@kernel(fastmath=FAST)
def _layer_norm(x, w, b, y, mean, rstd, eps):  # type: ignore[no-untyped-def]
    rows, n = x.shape
    for i in prange(rows):
        zero = x[i, 0] * 0
        total = zero
        for j in range(n):
            total += x[i, j]
        m = total / n
        square = zero
        for j in range(n):
            square += (x[i, j] - m) * (x[i, j] - m)
        r = 1 / np.sqrt(square / n + eps)
        mean[i, 0] = m
        rstd[i, 0] = r
        m, r = mean[i, 0], rstd[i, 0]
        for j in range(n):
            y[i, j] = (x[i, j] - m) * r
        if w.size:
            for j in range(n):
                y[i, j] *= w[j]
        if b.size:
            for j in range(n):
                y[i, j] += b[j]


@kernel(fastmath=FAST)
def _layer_norm_backward(g, x, w, mean, rstd, dx, dw, db):  # type: ignore[no-untyped-def]
    rows, n = x.shape
    for block in prange(dw.shape[0]):
        dw[block] = 0
        db[block] = 0
        gw = np.empty(n, x.dtype)
        for i in range(block * _BLOCK, min(rows, (block + 1) * _BLOCK)):
            m, r = mean[i, 0], rstd[i, 0]
            for j in range(n):
                gw[j] = g[i, j]
                dw[block, j] += g[i, j] * ((x[i, j] - m) * r)
                db[block, j] += g[i, j]
            if w.size:
                for j in range(n):
                    gw[j] *= w[j]
            total = m * 0
            dot = m * 0
            for j in range(n):
                total += gw[j]
                dot += gw[j] * ((x[i, j] - m) * r)
            total /= n
            dot /= n
            shift, slope = mean[i, 0] * 0 + total, mean[i, 0] * 0 + dot
            for j in range(n):
                dx[i, j] = (gw[j] - shift - (x[i, j] - m) * r * slope) * r


def layer_norm(x: Any, w: Any, b: Any, eps: float) -> tuple[Any, Any, Any]:
    """y, mean and 1/σ of the rows of x."""
    x = np.ascontiguousarray(x)
    none = np.empty(0, x.dtype)
    y = np.empty(x.shape, x.dtype)
    mean, rstd = np.empty((len(x), 1), x.dtype), np.empty((len(x), 1), x.dtype)
    w, b = (none if a is None else np.ascontiguousarray(a) for a in (w, b))
    _layer_norm(x, w, b, y, mean, rstd, x.dtype.type(eps))
    return y, mean, rstd


def layer_norm_backward(g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias."""
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    w = np.empty(0, x.dtype) if w is None else np.ascontiguousarray(w)
    dx = np.empty(x.shape, x.dtype)
    blocks = -(-len(x) // _BLOCK)
    dw, db = np.empty((blocks, x.shape[1]), x.dtype), np.empty((blocks, x.shape[1]), x.dtype)
    _layer_norm_backward(g, x, w, mean, rstd, dx, dw, db)
    return dx, dw.sum(0), db.sum(0)


@kernel(fastmath=FAST)
def _channel_statistics(x, mean, var):  # type: ignore[no-untyped-def]
    n, channels, length = x.shape
    for c in prange(channels):
        total = 0.0
        for i in range(n):
            part = x[i, c, 0] * 0
            for k in range(length):
                part += x[i, c, k]
            total += part
        mean[c] = total / (n * length)
        m = mean[c]
        square = 0.0
        for i in range(n):
            part = x[i, c, 0] * 0
            for k in range(length):
                part += (x[i, c, k] - m) * (x[i, c, k] - m)
            square += part
        var[c] = square / (n * length)


@kernel(fastmath=FAST)
def _channel_affine(x, scale, shift, y):  # type: ignore[no-untyped-def]
    n, channels, length = x.shape
    for p in prange(n * channels):
        i, c = p // channels, p % channels
        a, b = scale[c], shift[c]
        for k in range(length):
            y[i, c, k] = x[i, c, k] * a + b


@kernel(fastmath=FAST)
def _batch_norm_backward(g, x, mean, rstd, scale, training, dx, dw, db):  # type: ignore[no-untyped-def]
    n, channels, length = x.shape
    for c in prange(channels):
        m, r, s = mean[c], rstd[c], scale[c]
        sum_g, sum_gx = 0.0, 0.0
        for i in range(n):
            part_g, part_gx = m * 0, m * 0
            for k in range(length):
                part_g += g[i, c, k]
                part_gx += g[i, c, k] * (x[i, c, k] - m)
            sum_g += part_g
            sum_gx += part_gx
        db[c] = sum_g
        dw[c] = sum_gx * r
        if training:
            # dx = s·(g - mean_g - x̂·mean_gx̂) = s·g + a·x + b
            slope = -s * dw[c] * r / (n * length)
            shift = -s * db[c] / (n * length) - slope * m
            for i in range(n):
                for k in range(length):
                    dx[i, c, k] = s * g[i, c, k] + (slope * x[i, c, k] + shift)
        else:
            for i in range(n):
                for k in range(length):
                    dx[i, c, k] = s * g[i, c, k]


def channel_statistics(x: Any) -> tuple[Any, Any]:
    """Mean and biased variance of each channel of x_NCL."""
    x = np.ascontiguousarray(x)
    mean, var = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    _channel_statistics(x, mean, var)
    return mean, var


def channel_affine(x: Any, scale: Any, shift: Any) -> Any:
    """x_NCL · scale_C + shift_C."""
    x = np.ascontiguousarray(x)
    y = np.empty(x.shape, x.dtype)
    _channel_affine(x, scale, shift, y)
    return y


def batch_norm_backward(
    g: Any, x: Any, mean: Any, rstd: Any, scale: Any, training: bool
) -> tuple[Any, Any, Any]:
    """The gradients of x_NCL, weight and bias."""
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    dx = np.empty(x.shape, x.dtype)
    dw, db = np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    _batch_norm_backward(g, x, mean, rstd, scale, training, dx, dw, db)
    return dx, dw, db
