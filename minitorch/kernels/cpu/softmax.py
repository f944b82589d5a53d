"""softmax and log_softmax over the last axis, row by row.

Rows are shared out, so that results do not depend on the number of threads. float32 uses a
polynomial for exp that the compiler turns into vector code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel
from .scalars import exp_f32

_F = np.float32


@kernel(fastmath=FAST)
def _softmax_f32(first, last, x, y, log):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        xs, ys = x[i], y[i]
        top = _F(-np.inf)
        for j in range(len(xs)):
            top = max(top, xs[j])
        if top == _F(-np.inf):
            top = _F(0)
        total = _F(0)
        for j in range(len(xs)):
            below = xs[j] - top
            e = exp_f32(below)
            ys[j] = below if log else e
            total += e
        if log:  # not x - (top + log Σ), which is rounded to what the top has
            shift = _F(np.log(total))
            for j in range(len(xs)):
                ys[j] -= shift
        else:
            factor = _F(1) / total
            for j in range(len(xs)):
                ys[j] *= factor


@kernel()
def _softmax_f64(first, last, x, y, log):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        xs, ys = x[i], y[i]
        top = -np.inf
        for j in range(len(xs)):
            top = max(top, xs[j])
        if top == -np.inf:
            top = 0.0
        total = 0.0
        for j in range(len(xs)):
            ys[j] = np.exp(xs[j] - top)
            total += ys[j]
        shift = np.log(total)
        for j in range(len(xs)):
            ys[j] = (xs[j] - top) - shift if log else ys[j] / total


@kernel(fastmath=FAST)
def _softmax_backward(first, last, g, y, dx):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        gs, ys, ds = g[i], y[i], dx[i]
        dot = ys[0] * 0
        for j in range(len(ys)):
            dot += gs[j] * ys[j]
        for j in range(len(ys)):
            ds[j] = ys[j] * (gs[j] - dot)


@kernel(fastmath=FAST)
def _log_softmax_backward_f32(first, last, g, y, dx):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        gs, ys, ds = g[i], y[i], dx[i]
        total = _F(0)
        for j in range(len(ys)):
            total += gs[j]
        for j in range(len(ys)):
            ds[j] = gs[j] - exp_f32(ys[j]) * total


@kernel()
def _log_softmax_backward_f64(first, last, g, y, dx):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        gs, ys, ds = g[i], y[i], dx[i]
        total = 0.0
        for j in range(len(ys)):
            total += gs[j]
        for j in range(len(ys)):
            ds[j] = gs[j] - np.exp(ys[j]) * total


def _as_rows(a: Any) -> Any:
    return np.ascontiguousarray(a).reshape(-1, a.shape[-1])


def _softmax(x: Any, log: bool) -> Any:
    y = np.empty(x.shape, x.dtype)
    body = _softmax_f32 if x.dtype == np.float32 else _softmax_f64
    rows = _as_rows(x)
    body(len(rows), rows, _as_rows(y), log)
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
    rows = _as_rows(g)
    _softmax_backward(len(rows), rows, _as_rows(y), _as_rows(dx))
    return dx


def log_softmax_backward(g: Any, y: Any) -> Any:
    """The gradient of log_softmax with output y."""
    dx = np.empty(y.shape, y.dtype)
    float32 = y.dtype == np.float32
    body = _log_softmax_backward_f32 if float32 else _log_softmax_backward_f64
    rows = _as_rows(g)
    body(len(rows), rows, _as_rows(y), _as_rows(dx))
    return dx
