"""Cross-entropy on rows of logits, in parallel over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from .compile import FAST, kernel
from .norm import exp_f32

_F = np.float32


@kernel(fastmath=FAST)
def _log_sum_exp(x, out):  # type: ignore[no-untyped-def]
    rows, n = x.shape
    for i in prange(rows):
        top = _F(-np.inf)
        for j in range(n):
            top = max(top, x[i, j])
        total = _F(0)
        for j in range(n):
            total += exp_f32(x[i, j] - top)
        out[i, 0] = top + np.log(total)


@kernel(fastmath=FAST)
def _cross_entropy_backward(x, lse, target, factor, dx):  # type: ignore[no-untyped-def]
    rows, n = x.shape
    for i in prange(rows):
        f, shift = factor[i], lse[i, 0]
        if f == 0:
            dx[i] = 0
            continue
        for j in range(n):
            dx[i, j] = exp_f32(x[i, j] - shift) * f
        dx[i, target[i]] -= f


def log_sum_exp(x: Any) -> Any:
    """`log Σ exp` of each row of x, f32[rows, 1]."""
    out = np.empty((len(x), 1), np.float32)
    _log_sum_exp(np.ascontiguousarray(x), out)
    return out


def cross_entropy_backward(x: Any, lse: Any, target: Any, factor: Any) -> Any:
    """`factor · (softmax(x) - onehot(target))` for each row."""
    dx = np.empty(x.shape, np.float32)
    if len(factor) != len(x):
        factor = np.broadcast_to(factor, (len(x),))
    _cross_entropy_backward(
        np.ascontiguousarray(x), lse, target, np.ascontiguousarray(factor, np.float32), dx
    )
    return dx
