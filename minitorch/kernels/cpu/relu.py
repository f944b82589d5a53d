"""ReLU and its gradient, one pass each, in blocks of elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel

_BLOCK = 4096


@kernel()
def _relu(first, last, x, y):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, min(x.size, last * _BLOCK)
    xs, ys = x[start:stop], y[start:stop]
    for i in range(xs.size):
        ys[i] = 0 if xs[i] <= 0 else xs[i]


@kernel()
def _relu_backward(first, last, g, y, dx):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, min(g.size, last * _BLOCK)
    gs, ys, ds = g[start:stop], y[start:stop], dx[start:stop]
    for i in range(gs.size):
        passed = gs[i]  # read in any case: a branch would keep the loop from vector code
        ds[i] = 0 if ys[i] <= 0 else passed


def _blocks(a: Any) -> int:
    return -(-a.size // _BLOCK)


def relu(x: Any) -> Any:
    """`max(x, 0)` of a contiguous array; NaN stays."""
    y = np.empty_like(x)
    _relu(_blocks(x), x.reshape(-1), y.reshape(-1))
    return y


def relu_backward(g: Any, y: Any) -> Any:
    """The gradient of `relu` with output y, of contiguous arrays."""
    dx = np.empty_like(g)
    _relu_backward(_blocks(g), g.reshape(-1), y.reshape(-1), dx.reshape(-1))
    return dx
