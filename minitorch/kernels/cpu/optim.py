"""Optimizer updates, gradient norms and scaling in one pass over memory, compiled by numba.

Every function works on 1-D contiguous float32 or float64 arrays of one dtype and changes them in
place. `h` holds the scalars of the rule in the same dtype. Rounding is that of the NumPy rules in
`minitorch.optim`, operation by operation: no fused multiply-add, no reordering. Elements are
independent, and sums are taken over blocks that the caller cuts, so that no result depends on the
number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

BLOCK = 16384
PARALLEL_FROM = 65536
LANES = 16

_serial = njit(cache=True, error_model="numpy", nogil=True)
_parallel = njit(cache=True, error_model="numpy", nogil=True, parallel=True)


@_serial
def _adam(p: Any, g: Any, m: Any, v: Any, h: Any) -> None:
    w1, c1, b2, w2, step, correction, eps, wd, keep, sign = (
        h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9],
    )  # fmt: skip
    for i in range(p.size):
        d = g[i] * sign + p[i] * wd
        e = d - m[i]
        mi = m[i] + e * w1 if w1 < c1 else d - e * c1
        vi = v[i] * b2 + d * w2 * d
        m[i] = mi
        v[i] = vi
        p[i] = p[i] * keep - mi / (np.sqrt(vi) / correction + eps) * step


@_parallel
def adam(p: Any, g: Any, m: Any, v: Any, h: Any) -> None:
    """Adam and AdamW; `h` as `Adam._scalars` returns it."""
    if p.size < PARALLEL_FROM:
        _adam(p, g, m, v, h)
        return
    for b in prange((p.size + BLOCK - 1) // BLOCK):
        s = slice(b * BLOCK, min(b * BLOCK + BLOCK, p.size))
        _adam(p[s], g[s], m[s], v[s], h)


@_serial
def _adam_amsgrad(p: Any, g: Any, m: Any, v: Any, top: Any, h: Any) -> None:
    w1, c1, b2, w2, step, correction, eps, wd, keep, sign = (
        h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9],
    )  # fmt: skip
    for i in range(p.size):
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


@_parallel
def adam_amsgrad(p: Any, g: Any, m: Any, v: Any, top: Any, h: Any) -> None:
    """Adam and AdamW with the running maximum of the second moment."""
    if p.size < PARALLEL_FROM:
        _adam_amsgrad(p, g, m, v, top, h)
        return
    for b in prange((p.size + BLOCK - 1) // BLOCK):
        s = slice(b * BLOCK, min(b * BLOCK + BLOCK, p.size))
        _adam_amsgrad(p[s], g[s], m[s], v[s], top[s], h)


@_serial
def _sgd(p: Any, g: Any, h: Any) -> None:
    lr, wd, sign = h[0], h[1], h[2]
    for i in range(p.size):
        p[i] -= (g[i] * sign + p[i] * wd) * lr


@_parallel
def sgd(p: Any, g: Any, h: Any) -> None:
    """SGD without momentum."""
    if p.size < PARALLEL_FROM:
        _sgd(p, g, h)
        return
    for b in prange((p.size + BLOCK - 1) // BLOCK):
        s = slice(b * BLOCK, min(b * BLOCK + BLOCK, p.size))
        _sgd(p[s], g[s], h)


@_serial
def _sgd_momentum(p: Any, g: Any, buf: Any, h: Any) -> None:
    lr, wd, sign, keep, take, direct, through = h[0], h[1], h[2], h[3], h[4], h[5], h[6]
    for i in range(p.size):
        d = g[i] * sign + p[i] * wd
        b = buf[i] * keep + d * take
        buf[i] = b
        p[i] -= (d * direct + b * through) * lr


@_parallel
def sgd_momentum(p: Any, g: Any, buf: Any, h: Any) -> None:
    """SGD with momentum, Nesterov's too."""
    if p.size < PARALLEL_FROM:
        _sgd_momentum(p, g, buf, h)
        return
    for b in prange((p.size + BLOCK - 1) // BLOCK):
        s = slice(b * BLOCK, min(b * BLOCK + BLOCK, p.size))
        _sgd_momentum(p[s], g[s], buf[s], h)


@_serial
def _rmsprop(p: Any, g: Any, v: Any, h: Any) -> None:
    lr, alpha, w, eps, wd, sign = h[0], h[1], h[2], h[3], h[4], h[5]
    for i in range(p.size):
        d = g[i] * sign + p[i] * wd
        vi = v[i] * alpha + d * w * d
        v[i] = vi
        p[i] -= d / (np.sqrt(vi) + eps) * lr


@_parallel
def rmsprop(p: Any, g: Any, v: Any, h: Any) -> None:
    """RMSprop without momentum, not centered."""
    if p.size < PARALLEL_FROM:
        _rmsprop(p, g, v, h)
        return
    for b in prange((p.size + BLOCK - 1) // BLOCK):
        s = slice(b * BLOCK, min(b * BLOCK + BLOCK, p.size))
        _rmsprop(p[s], g[s], v[s], h)


@_serial
def _rmsprop_momentum(p: Any, g: Any, v: Any, buf: Any, h: Any) -> None:
    lr, alpha, w, eps, wd, sign, momentum = h[0], h[1], h[2], h[3], h[4], h[5], h[6]
    for i in range(p.size):
        d = g[i] * sign + p[i] * wd
        vi = v[i] * alpha + d * w * d
        v[i] = vi
        b = buf[i] * momentum + d / (np.sqrt(vi) + eps)
        buf[i] = b
        p[i] -= b * lr


@_parallel
def rmsprop_momentum(p: Any, g: Any, v: Any, buf: Any, h: Any) -> None:
    """RMSprop with momentum, not centered."""
    if p.size < PARALLEL_FROM:
        _rmsprop_momentum(p, g, v, buf, h)
        return
    for b in prange((p.size + BLOCK - 1) // BLOCK):
        s = slice(b * BLOCK, min(b * BLOCK + BLOCK, p.size))
        _rmsprop_momentum(p[s], g[s], v[s], buf[s], h)


@_serial
def _adagrad(p: Any, g: Any, total: Any, h: Any) -> None:
    lr, eps, wd, sign = h[0], h[1], h[2], h[3]
    for i in range(p.size):
        d = g[i] * sign + p[i] * wd
        t = total[i] + d * d
        total[i] = t
        p[i] -= d / (np.sqrt(t) + eps) * lr


@_parallel
def adagrad(p: Any, g: Any, total: Any, h: Any) -> None:
    """Adagrad."""
    if p.size < PARALLEL_FROM:
        _adagrad(p, g, total, h)
        return
    for b in prange((p.size + BLOCK - 1) // BLOCK):
        s = slice(b * BLOCK, min(b * BLOCK + BLOCK, p.size))
        _adagrad(p[s], g[s], total[s], h)


@_serial
def _scale(x: Any, factor: Any) -> bool:
    """Multiplies `x`; True if every product is finite."""
    bad = np.int32(0)
    for i in range(x.size):
        y = x[i] * factor
        x[i] = y
        # y * 0 is 0 or NaN. An integer that collects it vectorises, a branch or a float does not.
        bad |= np.int32(y * 0 != 0)
    return bool(bad == 0)


@_parallel
def scale(x: Any, factor: Any) -> bool:
    """Multiplies `x` by `factor` in place and says whether every product is finite."""
    if x.size < PARALLEL_FROM:
        return bool(_scale(x, factor))
    bad = 0
    for b in prange((x.size + BLOCK - 1) // BLOCK):
        if not _scale(x[b * BLOCK : min(b * BLOCK + BLOCK, x.size)], factor):
            bad += 1
    return bad == 0


@_serial
def _sum_squares(x: Any) -> float:
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
    return float(lanes[0])


@_parallel
def sum_squares(x: Any, starts: Any, stops: Any, out: Any) -> None:
    """`out[b]` becomes the float64 sum of squares of `x[starts[b]:stops[b]]`."""
    if x.size < PARALLEL_FROM:
        for b in range(starts.size):
            out[b] = _sum_squares(x[starts[b] : stops[b]])
        return
    for b in prange(starts.size):
        out[b] = _sum_squares(x[starts[b] : stops[b]])
