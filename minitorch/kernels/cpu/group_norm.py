"""group_norm and instance_norm: each group of channels of a sample is a row of planes.

Shapes: x_RPL with the planes of a group one after the other, w_GP; row i belongs to group i % G.
Rows are shared out, and each is read from memory once where it fits into the second cache. Sums
are formed in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel


@kernel(fastmath=FAST)
def _forward(first, last, x, w, b, y, mean, rstd, eps):  # type: ignore[no-untyped-def]
    _, planes, length = x.shape
    for i in range(first, last):
        # Around the first number, the sum of squares loses nothing to that of a large mean.
        origin = np.float64(x[i, 0, 0])
        total, square = 0.0, 0.0
        for p in range(planes):
            source = x[i, p]
            for k in range(len(source)):
                away = np.float64(source[k]) - origin
                total += away
                square += away * away
        away = total / (planes * length)
        variance = square / (planes * length) - away * away
        mean[i] = origin + away
        rstd[i] = 1 / np.sqrt(max(variance, 0.0) + eps)
        m, r = x.dtype.type(mean[i]), rstd[i]
        lost = x.dtype.type(mean[i] - m)
        for p in range(planes):
            source, out = x[i, p], y[i, p]
            scale = w[i % len(w), p] * r
            shift = b[i % len(w), p] - lost * scale
            for k in range(len(source)):
                out[k] = (source[k] - m) * scale + shift


@kernel(fastmath=FAST)
def _backward(first, last, g, x, w, mean, rstd, dx, dw, db):  # type: ignore[no-untyped-def]
    _, planes, length = x.shape
    shares = np.empty(2, x.dtype)
    for i in range(first, last):
        m, r, factors = x.dtype.type(mean[i]), rstd[i], w[i % len(w)]
        lost = mean[i] - m
        slope, offset = 0.0, 0.0
        for p in range(planes):
            gs, xs = g[i, p], x[i, p]
            total, dot = 0.0, 0.0
            for k in range(len(gs)):
                total += gs[k]
                dot += gs[k] * (xs[k] - m)
            dot -= total * lost
            db[i, p], dw[i, p] = total, dot * r
            offset += total * factors[p]
            slope += dot * r * factors[p]
        # dx = r·(w·g - offset/n - x̂·slope/n), with x̂ = (x - m)·r
        shares[0], shares[1] = slope * r * r / (planes * length), offset * r / (planes * length)
        a, c = shares[0], shares[1]
        for p in range(planes):
            gs, xs, ds, scale = g[i, p], x[i, p], dx[i, p], factors[p] * r
            for k in range(len(gs)):
                ds[k] = gs[k] * scale - (xs[k] - m) * a - c


def _weights(a: Any, missing: float, shape: tuple[int, int], dtype: Any) -> Any:
    return np.full(shape, missing, dtype) if a is None else np.ascontiguousarray(a).reshape(shape)


def group_norm(x: Any, w: Any, b: Any, groups: int, eps: float) -> tuple[Any, Any, Any]:
    """y_NCL of x_NCL, and mean (float64) and 1/σ of each group of each sample."""
    (n, c, length), x = x.shape, np.ascontiguousarray(x)
    y, shape = np.empty(x.shape, x.dtype), (groups, c // groups)
    mean, rstd = np.empty(n * groups), np.empty(n * groups, x.dtype)
    affine = (_weights(w, 1, shape, x.dtype), _weights(b, 0, shape, x.dtype))
    rows = (a.reshape(n * groups, c // groups, length) for a in (x, y))
    source, out = rows
    _forward(len(mean), source, *affine, out, mean, rstd, float(eps))
    return y, mean, rstd


def group_norm_backward(
    g: Any, x: Any, w: Any, groups: int, mean: Any, rstd: Any
) -> tuple[Any, Any, Any]:
    """The gradients of x_NCL, weight_C and bias_C."""
    n, c, length = x.shape
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    dx = np.empty(x.shape, x.dtype)
    dw, db = np.empty((2, n * groups, c // groups), x.dtype)
    rows = [a.reshape(n * groups, c // groups, length) for a in (g, x, dx)]
    weights = _weights(w, 1, (groups, c // groups), x.dtype)
    given = (weights, np.asarray(mean, np.float64), rstd, rows[2], dw, db)
    _backward(len(mean), *rows[:2], *given)
    return dx, dw.reshape(n, c).sum(0), db.reshape(n, c).sum(0)
