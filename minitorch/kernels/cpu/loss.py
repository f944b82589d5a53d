"""Cross-entropy on rows of logits: log-softmax and the choice of the target in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel
from .scalars import exp_f32

_F = np.float32


@kernel(fastmath=FAST)
def _cross_entropy(first, last, x, target, factor, lse, loss):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        xs = x[i]
        top = _F(-np.inf)
        for j in range(len(xs)):
            top = max(top, xs[j])
        total = _F(0)
        for j in range(len(xs)):
            total += exp_f32(xs[j] - top)
        lse[i, 0] = top + np.log(total)
        # An ignored row may hold inf or NaN; it must not reach the sum.
        loss[i] = _F(0) if factor[i] == 0 else (lse[i, 0] - xs[target[i]]) * factor[i]


@kernel(fastmath=FAST)
def _cross_entropy_backward(first, last, x, lse, target, factor, dx):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        xs, ds, f, shift = x[i], dx[i], factor[i], lse[i, 0]
        if f == 0:
            for j in range(len(xs)):
                ds[j] = _F(0)
        else:
            for j in range(len(xs)):
                ds[j] = exp_f32(xs[j] - shift) * f
            ds[target[i]] -= f


def cross_entropy(x: Any, target: Any, factor: Any) -> tuple[Any, Any]:
    """`log Σ exp` of each row of x, f32[rows, 1], and `factor · (that - x[target])`, f32[rows].

    Where the factor is 0, so is the loss, whatever the row holds.
    """
    x = np.ascontiguousarray(x)
    lse, loss = np.empty((len(x), 1), np.float32), np.empty(len(x), np.float32)
    _cross_entropy(len(x), x, target, factor, lse, loss)
    return lse, loss


def cross_entropy_backward(x: Any, lse: Any, target: Any, factor: Any) -> Any:
    """`factor · (softmax(x) - onehot(target))` for each row."""
    dx = np.empty(x.shape, np.float32)
    if len(factor) != len(x):
        factor = np.broadcast_to(factor, (len(x),))
    factor = np.ascontiguousarray(factor, np.float32)
    _cross_entropy_backward(len(x), np.ascontiguousarray(x), lse, target, factor, dx)
    return dx
