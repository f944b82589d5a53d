"""Optimizer updates, gradient norms and scaling in one pass over memory, compiled by numba.

Every function works on 1-D contiguous float32 or float64 arrays of one dtype and changes them in
place. `h` holds the scalars of the rule in the same dtype. Rounding is that of the NumPy rules in
`minitorch.optim`, operation by operation: no fused multiply-add, no reordering. Elements are
independent, and sums are taken over blocks that the caller cuts, so that no result depends on the
number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .kernel import kernel

BLOCK = 16384
LANES = 16


def _by_blocks(body: Callable[..., None]) -> Callable[..., None]:
    """The function of arrays that works on all blocks of the first one; decorator."""
    compiled = kernel()(body)

    def work(p: Any, *others: Any) -> None:
        compiled(-(-p.size // BLOCK), p, *others)

    work.__doc__ = body.__doc__
    return work


@_by_blocks
def adam(first, last, p, g, m, v, h):  # type: ignore[no-untyped-def]
    """Adam and AdamW; `h` as `Adam._scalars` returns it."""
    s = slice(first * BLOCK, last * BLOCK)
    p, g, m, v = p[s], g[s], m[s], v[s]
    w1, c1, b2, w2, step, correction, eps, wd, keep, sign = (
        h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9],
    )  # fmt: skip
    for i in range(len(p)):
        d = g[i] * sign + p[i] * wd
        e = d - m[i]
        mi = m[i] + e * w1 if w1 < c1 else d - e * c1
        vi = v[i] * b2 + d * w2 * d
        m[i] = mi
        v[i] = vi
        p[i] = p[i] * keep - mi / (np.sqrt(vi) / correction + eps) * step


@_by_blocks
def adam_amsgrad(first, last, p, g, m, v, top, h):  # type: ignore[no-untyped-def]
    """Adam and AdamW with the running maximum of the second moment."""
    s = slice(first * BLOCK, last * BLOCK)
    p, g, m, v, top = p[s], g[s], m[s], v[s], top[s]
    w1, c1, b2, w2, step, correction, eps, wd, keep, sign = (
        h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9],
    )  # fmt: skip
    for i in range(len(p)):
        d = g[i] * sign + p[i] * wd
        e = d - m[i]
        mi = m[i] + e * w1 if w1 < c1 else d - e * c1
        vi = v[i] * b2 + d * w2 * d
        m[i] = mi
        v[i] = vi
        # `not (vi <= t)` hands a NaN on, as np.maximum does.
        t = top[i]
        t = t if vi <= t or t != t else vi
        top[i] = t
        p[i] = p[i] * keep - mi / (np.sqrt(t) / correction + eps) * step


@_by_blocks
def sgd(first, last, p, g, h):  # type: ignore[no-untyped-def]
    """SGD without momentum."""
    s = slice(first * BLOCK, last * BLOCK)
    p, g = p[s], g[s]
    lr, wd, sign = h[0], h[1], h[2]
    for i in range(len(p)):
        p[i] -= (g[i] * sign + p[i] * wd) * lr


@_by_blocks
def sgd_momentum(first, last, p, g, buf, h):  # type: ignore[no-untyped-def]
    """SGD with momentum, Nesterov's too."""
    s = slice(first * BLOCK, last * BLOCK)
    p, g, buf = p[s], g[s], buf[s]
    lr, wd, sign, keep, take, direct, through = h[0], h[1], h[2], h[3], h[4], h[5], h[6]
    for i in range(len(p)):
        d = g[i] * sign + p[i] * wd
        b = buf[i] * keep + d * take
        buf[i] = b
        p[i] -= (d * direct + b * through) * lr


@_by_blocks
def rmsprop(first, last, p, g, v, h):  # type: ignore[no-untyped-def]
    """RMSprop without momentum, not centered."""
    s = slice(first * BLOCK, last * BLOCK)
    p, g, v = p[s], g[s], v[s]
    lr, alpha, w, eps, wd, sign = h[0], h[1], h[2], h[3], h[4], h[5]
    for i in range(len(p)):
        d = g[i] * sign + p[i] * wd
        vi = v[i] * alpha + d * w * d
        v[i] = vi
        p[i] -= d / (np.sqrt(vi) + eps) * lr


@_by_blocks
def rmsprop_momentum(first, last, p, g, v, buf, h):  # type: ignore[no-untyped-def]
    """RMSprop with momentum, not centered."""
    s = slice(first * BLOCK, last * BLOCK)
    p, g, v, buf = p[s], g[s], v[s], buf[s]
    lr, alpha, w, eps, wd, sign, momentum = h[0], h[1], h[2], h[3], h[4], h[5], h[6]
    for i in range(len(p)):
        d = g[i] * sign + p[i] * wd
        vi = v[i] * alpha + d * w * d
        v[i] = vi
        b = buf[i] * momentum + d / (np.sqrt(vi) + eps)
        buf[i] = b
        p[i] -= b * lr


@_by_blocks
def adagrad(first, last, p, g, total, h):  # type: ignore[no-untyped-def]
    """Adagrad."""
    s = slice(first * BLOCK, last * BLOCK)
    p, g, total = p[s], g[s], total[s]
    lr, eps, wd, sign = h[0], h[1], h[2], h[3]
    for i in range(len(p)):
        d = g[i] * sign + p[i] * wd
        t = total[i] + d * d
        total[i] = t
        p[i] -= d / (np.sqrt(t) + eps) * lr


@kernel()
def _scale(first, last, x, factor, bad):  # type: ignore[no-untyped-def]
    for b in range(first, last):
        block = x[b * BLOCK : (b + 1) * BLOCK]
        found = np.int32(0)
        for i in range(len(block)):
            y = block[i] * factor
            block[i] = y
            # y * 0 is 0 or NaN. An integer collects it in vector code, a branch or a float not.
            found |= np.int32(y * 0 != 0)
        bad[b] = found


def scale(x: Any, factor: Any) -> bool:
    """Multiplies `x` by `factor` in place and says whether every product is finite."""
    bad = np.empty(-(-x.size // BLOCK), np.int32)
    _scale(len(bad), x, factor, bad)
    return not bad.any()


@njit(cache=True, error_model="numpy", nogil=True)
def _sum_squares(x):  # type: ignore[no-untyped-def]
    """The float64 sum of squares, over `LANES` running sums that the caller's rule fixes."""
    lanes = np.zeros(LANES)
    whole = x.size // LANES * LANES
    for i in range(0, whole, LANES):
        for k in range(LANES):
            y = np.float64(x[i + k])
            lanes[k] += y * y
    for i in range(whole, x.size):
        y = np.float64(x[i])
        lanes[i - whole] += y * y
    width = LANES
    while width > 1:
        width //= 2
        for k in range(width):
            lanes[k] += lanes[k + width]
    return lanes[0]


@kernel()
def _sums_of_squares(first, last, x, starts, stops, out):  # type: ignore[no-untyped-def]
    for b in range(first, last):
        out[b] = _sum_squares(x[starts[b] : stops[b]])


def sum_squares(x: Any, starts: Any, stops: Any, out: Any) -> None:
    """`out[b]` becomes the float64 sum of squares of `x[starts[b]:stops[b]]`."""
    _sums_of_squares(len(starts), x, starts, stops, out)
