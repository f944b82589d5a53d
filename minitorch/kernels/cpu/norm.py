"""layer_norm and rms_norm over the last axis, row by row.

Rows are shared out; sums over rows are formed in blocks of fixed size, and added up in their order
in a second round, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, in_rounds, kernel

_BLOCK = 32  # rows whose sums are formed together


@kernel(fastmath=FAST)
def _layer_norm(first, last, x, w, b, y, stats, eps, centred):  # type: ignore[no-untyped-def]
    small = x.dtype.type(eps)
    for i in range(first, last):
        xs, ys = x[i], y[i]
        total = x.dtype.type(0)
        if centred:
            for j in range(len(xs)):
                total += xs[j]
        stats[0, i] = total / len(xs)
        m = stats[0, i]  # of the dtype of x, which a quotient by a whole number is not
        square = x.dtype.type(0)
        for j in range(len(xs)):
            square += (xs[j] - m) * (xs[j] - m)
        stats[1, i] = 1 / np.sqrt(square / len(xs) + small)
        r = stats[1, i]
        for j in range(len(xs)):
            ys[j] = (xs[j] - m) * r * w[j] + b[j]


@kernel(fastmath=FAST)
def _layer_norm_backward(  # type: ignore[no-untyped-def]
    first, last, g, x, w, stats, dx, sums, onto, adds, centred
):
    shares, blocks = np.empty(2, x.dtype), sums.shape[1]
    for block in range(first, min(last, blocks)):
        dw, db = sums[0, block], sums[1, block]
        for j in range(len(dw)):
            dw[j] = db[j] = 0
        for i in range(block * _BLOCK, min(len(x), (block + 1) * _BLOCK)):
            gs, xs, ds, m, r = g[i], x[i], dx[i], stats[0, i], stats[1, i]
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
            if adds:  # apart from the line above, with which it would be rounded once
                others = onto[i]
                for j in range(len(ds)):
                    ds[j] += others[j]
    for line in range(2 if last > blocks else 0):
        total = sums[line, 0]
        for later in range(1, blocks):
            part = sums[line, later]
            for j in range(len(total)):
                total[j] += part[j]


def _line(a: Any, size: int, dtype: Any, missing: float) -> Any:
    """A weight or bias in one piece; where there is none, a number that changes nothing."""
    if a is None:
        return np.full(size, missing, dtype)
    return a if a.ndim == 1 and a.flags.c_contiguous else np.ascontiguousarray(a).reshape(-1)


def _rows(a: Any, size: int) -> Any:
    return (a if a.flags.c_contiguous else np.ascontiguousarray(a)).reshape(-1, size)


def _normal(x: Any, w: Any, b: Any, size: int, eps: float, centred: bool) -> tuple[Any, Any]:
    rows, dtype = _rows(x, size), x.dtype
    y, stats = np.empty(x.shape, dtype), np.empty((2, len(rows)), dtype)
    lines = _line(w, size, dtype, 1), _line(b, size, dtype, 0)
    _layer_norm(len(rows), rows, *lines, y.reshape(-1, size), stats, eps, centred)
    return y, stats


def _normal_backward(
    g: Any, x: Any, w: Any, stats: Any, size: int, onto: Any, centred: bool
) -> tuple[Any, Any, Any]:
    g, rows, dtype = _rows(g, size), _rows(x, size), x.dtype
    blocks = -(-len(rows) // _BLOCK)
    dx, sums = np.empty(x.shape, dtype), np.empty((2, blocks, size), dtype)
    others = rows if onto is None else _rows(onto, size)
    given = g, rows, _line(w, size, dtype, 1), stats, dx.reshape(-1, size), sums, others
    _layer_norm_backward(in_rounds(blocks, 1), *given, onto is not None, centred)
    dw, db = sums[:, 0]
    return dx, dw, db


def layer_norm(x: Any, w: Any, b: Any, size: int, eps: float) -> tuple[Any, Any]:
    """y, and mean and 1/σ of the rows of `size` numbers of x, which is not empty."""
    return _normal(x, w, b, size, eps, True)


def layer_norm_backward(
    g: Any, x: Any, w: Any, stats: Any, size: int, onto: Any = None
) -> tuple[Any, Any, Any]:
    """The gradients of x, `onto` which it is added, weight and bias."""
    return _normal_backward(g, x, w, stats, size, onto, True)


def rms_norm(x: Any, w: Any, size: int, eps: float) -> tuple[Any, Any]:
    """y of the rows of x, and one by the root of their mean square behind a line of zeros."""
    return _normal(x, w, None, size, eps, False)


def rms_norm_backward(
    g: Any, x: Any, w: Any, stats: Any, size: int, onto: Any = None
) -> tuple[Any, Any]:
    """The gradients of x, `onto` which it is added, and weight."""
    return _normal_backward(g, x, w, stats, size, onto, False)[:2]
