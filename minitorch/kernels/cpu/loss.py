"""Cross-entropy on rows of logits: log-softmax and the choice of the target in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel
from .scalars import exp_f32

_F = np.float32


@kernel(fastmath=FAST)
def _cross_entropy(first, last, x, target, factor, sums, loss):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        xs = x[i]
        top = _F(-np.inf)
        for j in range(len(xs)):
            top = max(top, xs[j])
        total = _F(0)
        for j in range(len(xs)):
            total += exp_f32(xs[j] - top)
        sums[i, 0], sums[i, 1] = top, total
        # In float64, since log Σ is rounded away beside a large top.
        below = np.float64(top) - np.float64(xs[target[i]])
        # An ignored row may hold inf or NaN; it must not reach the sum.
        loss[i] = _F(0) if factor[i] == 0 else _F(below + np.log(total)) * factor[i]


@kernel(fastmath=FAST)
def _cross_entropy_backward(first, last, x, sums, target, factor, dx):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        xs, ds, f, top = x[i], dx[i], factor[i], sums[i, 0]
        if f == 0:
            for j in range(len(xs)):
                ds[j] = _F(0)
        else:
            share = f / sums[i, 1]
            for j in range(len(xs)):
                ds[j] = exp_f32(xs[j] - top) * share
            ds[target[i]] -= f


def cross_entropy(x: Any, target: Any, factor: Any) -> tuple[Any, Any]:
    """The largest number `top` of each row of x and `Σ exp(x - top)`, f32[rows, 2], and the loss.

    The loss is `factor · (top - x[target] + log Σ)`, f32[rows]. Where the factor is 0, so is the
    loss, whatever the row holds.
    """
    x = np.ascontiguousarray(x)
    sums, loss = np.empty((len(x), 2), np.float32), np.empty(len(x), np.float32)
    _cross_entropy(len(x), x, target, factor, sums, loss)
    return sums, loss


def cross_entropy_backward(x: Any, sums: Any, target: Any, factor: Any) -> Any:
    """`factor · (softmax(x) - onehot(target))` for each row."""
    dx = np.empty(x.shape, np.float32)
    if len(factor) != len(x):
        factor = np.broadcast_to(factor, (len(x),))
    factor = np.ascontiguousarray(factor, np.float32)
    _cross_entropy_backward(len(x), np.ascontiguousarray(x), sums, target, factor, dx)
    return dx
