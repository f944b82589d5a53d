"""layer_norm and rms_norm over the last axis, row by row.

Rows are shared out; sums over rows are formed in blocks of fixed size, so that results do not
depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel

_BLOCK = 32  # rows whose sums are formed together


@kernel(fastmath=FAST)
def _layer_norm(first, last, x, w, b, y, mean, rstd, eps, centred):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        xs, ys = x[i], y[i]
        total = x.dtype.type(0)
        if centred:
            for j in range(len(xs)):
                total += xs[j]
        mean[i, 0] = total / len(xs)
        m = mean[i, 0]  # of the dtype of x, which a quotient by a whole number is not
        square = x.dtype.type(0)
        for j in range(len(xs)):
            square += (xs[j] - m) * (xs[j] - m)
        rstd[i, 0] = 1 / np.sqrt(square / len(xs) + eps)
        r = rstd[i, 0]
        for j in range(len(xs)):
            ys[j] = (xs[j] - m) * r * w[j] + b[j]


@kernel(fastmath=FAST)
def _layer_norm_backward(first, last, g, x, w, mean, rstd, dx, sums, centred):  # type: ignore[no-untyped-def]
    shares = np.empty(2, x.dtype)
    for block in range(first, last):
        dw, db = sums[block, 0], sums[block, 1]
        for j in range(len(dw)):
            dw[j] = db[j] = 0
        for i in range(block * _BLOCK, min(len(x), (block + 1) * _BLOCK)):
            gs, xs, ds, m, r = g[i], x[i], dx[i], mean[i, 0], rstd[i, 0]
            total, dot = m * 0, m * 0
            for j in range(len(xs)):
                normal = (xs[j] - m) * r
                dw[j] += gs[j] * normal
                db[j] += gs[j]
                total += gs[j] * w[j]
                dot += gs[j] * w[j] * normal
            shares[0], shares[1] = total / len(xs) if centred else 0.0, dot / len(xs)
            shift, slope = shares[0], shares[1]
            for j in range(len(xs)):
                ds[j] = (gs[j] * w[j] - shift - (xs[j] - m) * r * slope) * r


def _line(a: Any, like: Any, missing: float) -> Any:
    """A weight or bias in one piece; where there is none, a number that changes nothing."""
    return np.full(like.shape[1], missing, like.dtype) if a is None else np.ascontiguousarray(a)


def _normal(x: Any, w: Any, b: Any, eps: float, centred: bool) -> tuple[Any, Any, Any]:
    x = np.ascontiguousarray(x)
    y = np.empty(x.shape, x.dtype)
    mean, rstd = np.empty((len(x), 1), x.dtype), np.empty((len(x), 1), x.dtype)
    given = (_line(w, x, 1), _line(b, x, 0), y, mean, rstd, x.dtype.type(eps), centred)
    _layer_norm(len(x), x, *given)
    return y, mean, rstd


def _normal_backward(g: Any, x: Any, w: Any, mean: Any, rstd: Any, centred: bool) -> Any:
    g, x = np.ascontiguousarray(g), np.ascontiguousarray(x)
    dx = np.empty(x.shape, x.dtype)
    blocks = -(-len(x) // _BLOCK)
    sums = np.empty((blocks, 2, x.shape[1]), x.dtype)
    _layer_norm_backward(blocks, g, x, _line(w, x, 1), mean, rstd, dx, sums, centred)
    dw, db = sums.sum(0)
    return dx, dw, db


def layer_norm(x: Any, w: Any, b: Any, eps: float) -> tuple[Any, Any, Any]:
    """y, mean and 1/σ of the rows of x."""
    return _normal(x, w, b, eps, True)


def layer_norm_backward(g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias."""
    return _normal_backward(g, x, w, mean, rstd, True)


def rms_norm(x: Any, w: Any, eps: float) -> tuple[Any, Any]:
    """y of the rows of x, and one by the root of their mean square."""
    y, _, factor = _normal(x, w, None, eps, False)
    return y, factor


def rms_norm_backward(g: Any, x: Any, w: Any, factor: Any) -> tuple[Any, Any]:
    """The gradients of x and weight."""
    dx, dw, _ = _normal_backward(g, x, w, np.zeros_like(factor), factor, False)
    return dx, dw
