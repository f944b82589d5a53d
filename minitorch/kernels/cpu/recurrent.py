"""LSTM and GRU over a whole sequence on float32, each block of the batch by one thread.

Sequences do not depend on each other, so that a thread goes through all steps of its sequences
without waiting for the others. What the bodies compute stands in `ops/recurrent_steps.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange
from numba.extending import register_jitable

from .. import threads
from .compile import FAST, kernel, part
from .scalars import exp_f32, logistic
from .share import take_number
from .tile import ROWS, multiply, panels_of

_F = np.float32
_ONE = _F(1)


@register_jitable
def tanh_f32(x):  # type: ignore[no-untyped-def]
    """tanh of a float32, to 2 units in the last place.

    Source: S. L. Moshier, Cephes Mathematical Library, tanhf, 1992.
    """
    s = x * x
    p = _F(-5.70498872745e-3) * s + _F(2.06390887954e-2)
    p = p * s + _F(-5.37397155531e-2)
    p = p * s + _F(1.33314422036e-1)
    p = p * s + _F(-3.33332819422e-1)
    e = exp_f32(_F(-2) * abs(x))
    large = (_ONE - e) / (_ONE + e)
    return p * s * x + x if abs(x) < _F(0.625) else (large if x > 0 else -large)


@part(fastmath=FAST)
def _squash(row, added, tanh):  # type: ignore[no-untyped-def]
    """The gate of `row + added`, in place."""
    if tanh:
        for j in range(len(row)):
            row[j] = tanh_f32(row[j] + added[j])
    else:
        for j in range(len(row)):
            row[j] = logistic(row[j] + added[j])[0]


@part(fastmath=FAST)
def _lstm_forward_blocks(  # type: ignore[no-untyped-def]
    counter, gates, panels, h, c, y, old, cells, squashed, firsts, sizes, block
):
    n = h.shape[1]
    hidden = np.zeros((block, n), _F)
    recurrent = np.empty((block, panels.shape[0] * panels.shape[2]), _F)
    while True:
        start = take_number(counter) * block
        if start >= h.shape[0]:
            break
        rows = min(block, h.shape[0] - start)
        hidden[:rows] = h[start : start + rows]
        for t in range(len(sizes)):
            live = min(rows, sizes[t] - start)
            if live <= 0:
                continue
            multiply(hidden, panels, recurrent, live)
            for r in range(live):
                at = firsts[t] + start + r
                a, extra = gates[at], recurrent[r]
                i, f, g, o = a[:n], a[n : 2 * n], a[2 * n : 3 * n], a[3 * n : 4 * n]
                _squash(a[: 2 * n], extra[: 2 * n], False)
                _squash(g, extra[2 * n : 3 * n], True)
                _squash(o, extra[3 * n : 4 * n], False)
                cell, now, before = c[start + r], hidden[r], cells[at]
                tanh, out, last = squashed[at], y[at], old[at]
                for j in range(n):
                    last[j] = now[j]
                    before[j] = cell[j]
                    cell[j] = f[j] * cell[j] + i[j] * g[j]
                for j in range(n):
                    tanh[j] = tanh_f32(cell[j])
                for j in range(n):
                    now[j] = o[j] * tanh[j]
                    out[j] = now[j]
        h[start : start + rows] = hidden[:rows]


@kernel()
def _lstm_forward(gates, panels, h, c, y, old, cells, squashed, firsts, sizes, block, workers):  # type: ignore[no-untyped-def]
    counter = np.zeros(1, np.int64)
    for _ in prange(workers):
        _lstm_forward_blocks(
            counter, gates, panels, h, c, y, old, cells, squashed, firsts, sizes, block
        )


@part(fastmath=FAST)
def _lstm_backward_blocks(  # type: ignore[no-untyped-def]
    counter, da, panels, dh, dc, dy, gates, cells, squashed, firsts, sizes, block
):
    n = dh.shape[1]
    slopes = np.zeros((block, 4 * n), _F)
    flow = np.empty((block, n), _F)
    product = np.empty((block, panels.shape[0] * panels.shape[2]), _F)
    while True:
        start = take_number(counter) * block
        if start >= dh.shape[0]:
            break
        rows = min(block, dh.shape[0] - start)
        flow[:rows] = dh[start : start + rows]
        for t in range(len(sizes)):
            live = min(rows, sizes[t] - start)
            if live <= 0:
                continue
            for r in range(live):
                at = firsts[t] + start + r
                a, d, into = gates[at], slopes[r], da[at]
                i, f, g, o = a[:n], a[n : 2 * n], a[2 * n : 3 * n], a[3 * n : 4 * n]
                di, df, dg, do = d[:n], d[n : 2 * n], d[2 * n : 3 * n], d[3 * n : 4 * n]
                back, given, cell = flow[r], dy[at], dc[start + r]
                tanh, before = squashed[at], cells[at]
                for j in range(n):
                    out = back[j] + given[j]
                    e = cell[j] + out * o[j] * (_ONE - tanh[j] * tanh[j])
                    do[j] = out * tanh[j] * o[j] * (_ONE - o[j])
                    di[j] = e * g[j] * i[j] * (_ONE - i[j])
                    df[j] = e * before[j] * f[j] * (_ONE - f[j])
                    dg[j] = e * i[j] * (_ONE - g[j] * g[j])
                    cell[j] = e * f[j]
                into[:] = d
            multiply(slopes, panels, product, live)
            flow[:live] = product[:live, :n]
        dh[start : start + rows] = flow[:rows]


@kernel()
def _lstm_backward(da, panels, dh, dc, dy, gates, cells, squashed, firsts, sizes, block, workers):  # type: ignore[no-untyped-def]
    counter = np.zeros(1, np.int64)
    for _ in prange(workers):
        _lstm_backward_blocks(
            counter, da, panels, dh, dc, dy, gates, cells, squashed, firsts, sizes, block
        )


@part(fastmath=FAST)
def _gru_forward_blocks(counter, gates, panels, bias, h, y, old, inner, firsts, sizes, block):  # type: ignore[no-untyped-def]
    n = h.shape[1]
    hidden = np.zeros((block, n), _F)
    recurrent = np.empty((block, panels.shape[0] * panels.shape[2]), _F)
    while True:
        start = take_number(counter) * block
        if start >= h.shape[0]:
            break
        rows = min(block, h.shape[0] - start)
        hidden[:rows] = h[start : start + rows]
        for t in range(len(sizes)):
            live = min(rows, sizes[t] - start)
            if live <= 0:
                continue
            multiply(hidden, panels, recurrent, live)
            for row in range(live):
                at = firsts[t] + start + row
                a, extra = gates[at], recurrent[row]
                r, z, new = a[:n], a[n : 2 * n], a[2 * n : 3 * n]
                for j in range(len(bias)):
                    extra[j] += bias[j]
                _squash(a[: 2 * n], extra[: 2 * n], False)
                part, last, now, out = inner[at], old[at], hidden[row], y[at]
                third = extra[2 * n : 3 * n]
                for j in range(n):
                    part[j] = third[j]
                    last[j] = now[j]
                    third[j] = r[j] * third[j]
                _squash(new, third, True)
                for j in range(n):
                    now[j] = new[j] + z[j] * (now[j] - new[j])
                    out[j] = now[j]
        h[start : start + rows] = hidden[:rows]


@kernel()
def _gru_forward(gates, panels, bias, h, y, old, inner, firsts, sizes, block, workers):  # type: ignore[no-untyped-def]
    counter = np.zeros(1, np.int64)
    for _ in prange(workers):
        _gru_forward_blocks(counter, gates, panels, bias, h, y, old, inner, firsts, sizes, block)


@part(fastmath=FAST)
def _gru_backward_blocks(counter, da, dr, panels, dh, dy, gates, old, inner, firsts, sizes, block):  # type: ignore[no-untyped-def]
    n = dh.shape[1]
    slopes = np.zeros((block, 3 * n), _F)
    through = np.zeros((block, n), _F)
    flow = np.empty((block, n), _F)
    product = np.empty((block, panels.shape[0] * panels.shape[2]), _F)
    while True:
        start = take_number(counter) * block
        if start >= dh.shape[0]:
            break
        rows = min(block, dh.shape[0] - start)
        flow[:rows] = dh[start : start + rows]
        for t in range(len(sizes)):
            live = min(rows, sizes[t] - start)
            if live <= 0:
                continue
            for row in range(live):
                at = firsts[t] + start + row
                a, d, into, back = gates[at], slopes[row], da[at], flow[row]
                r, z, new = a[:n], a[n : 2 * n], a[2 * n : 3 * n]
                d_r, d_z, d_n = d[:n], d[n : 2 * n], d[2 * n : 3 * n]
                given, before, part, direct = dy[at], old[at], inner[at], through[row]
                i_r, i_z, i_n = into[:n], into[n : 2 * n], into[2 * n : 3 * n]
                for j in range(n):
                    out = back[j] + given[j]
                    slope = out * (_ONE - z[j]) * (_ONE - new[j] * new[j])
                    i_n[j] = slope
                    d_n[j] = slope * r[j]
                    d_r[j] = slope * part[j] * r[j] * (_ONE - r[j])
                    d_z[j] = out * (before[j] - new[j]) * z[j] * (_ONE - z[j])
                    direct[j] = out * z[j]
                i_r[:] = d_r
                i_z[:] = d_z
                dr[at] = d
            multiply(slopes, panels, product, live)
            for row in range(live):
                for j in range(n):
                    flow[row, j] = product[row, j] + through[row, j]
        dh[start : start + rows] = flow[:rows]


@kernel()
def _gru_backward(da, dr, panels, dh, dy, gates, old, inner, firsts, sizes, block, workers):  # type: ignore[no-untyped-def]
    counter = np.zeros(1, np.int64)
    for _ in prange(workers):
        _gru_backward_blocks(
            counter, da, dr, panels, dh, dy, gates, old, inner, firsts, sizes, block
        )


def _walked(walk: Any) -> tuple[Any, Any]:
    """First row and number of rows of each step, in the order of the walk."""
    steps = np.array([(first, end - first) for _, first, end in walk], np.int64).reshape(-1, 2)
    return np.ascontiguousarray(steps[:, 0]), np.ascontiguousarray(steps[:, 1])


def _shares(batch: int) -> tuple[int, int]:
    """Sequences of a block, so that each thread has one, and how many threads work."""
    many = threads.count()
    block = -(-batch // (many * ROWS)) * ROWS
    return block, min(many, -(-batch // block))


def _together(shape: tuple[int, int], *first: Any) -> tuple[Any, list[Any]]:
    """Flat memory, and in it the states of all rows, to be filled, and copies of the first ones."""
    ends = np.cumsum([shape[0] * shape[1], *[a.size for a in first]])
    flat = np.empty(ends[-1], _F)
    parts = [flat[: ends[0]].reshape(shape)]
    for start, end, a in zip(ends, ends[1:], first, strict=False):
        parts.append(flat[start:end].reshape(a.shape))
        parts[-1][...] = a
    return flat, parts


def lstm_forward(gates: Any, h0: Any, c0: Any, w_hh: Any, walk: Any) -> tuple[Any, Any]:
    """As `recurrent_steps`, flat, from the input's part of the gates, which it overwrites."""
    shape = len(gates), h0.shape[1]
    flat, (y, h, c) = _together(shape, h0, c0)
    old, cells, squashed = (np.empty(shape, _F) for _ in range(3))
    block, workers = _shares(len(h))
    _lstm_forward.share(
        workers, gates, panels_of(w_hh.T), h, c, y, old, cells, squashed, *_walked(walk), block
    )
    return flat, (gates, old, cells, squashed)


def lstm_backward(dy: Any, dh: Any, dc: Any, residuals: Any, w_hh: Any, walk: Any) -> Any:
    """The slopes of the gates; `dh` and `dc` become the gradients of the first states."""
    gates, _, cells, squashed = residuals
    da = np.empty(gates.shape, _F)
    block, workers = _shares(len(dh))
    steps = _walked(walk)
    panels, dy = panels_of(w_hh), np.ascontiguousarray(dy)
    _lstm_backward.share(workers, da, panels, dh, dc, dy, gates, cells, squashed, *steps, block)
    return da


def gru_forward(gates: Any, h0: Any, w_hh: Any, b_hh: Any, walk: Any) -> tuple[Any, Any]:
    """As `recurrent_steps`, flat, from the input's part of the gates, which it overwrites."""
    shape = len(gates), h0.shape[1]
    flat, (y, h) = _together(shape, h0)
    old, inner = (np.empty(shape, _F) for _ in range(2))
    bias = np.empty(0, _F) if b_hh is None else np.ascontiguousarray(b_hh)
    block, workers = _shares(len(h))
    _gru_forward.share(
        workers, gates, panels_of(w_hh.T), bias, h, y, old, inner, *_walked(walk), block
    )
    return flat, (gates, old, inner)


def gru_backward(dy: Any, dh: Any, residuals: Any, w_hh: Any, walk: Any) -> tuple[Any, Any]:
    """The slopes of the input's and of the recurrent part; `dh` becomes the gradient of h0."""
    gates, old, inner = residuals
    da, dr = np.empty(gates.shape, _F), np.empty(gates.shape, _F)
    block, workers = _shares(len(dh))
    panels, dy = panels_of(w_hh), np.ascontiguousarray(dy)
    _gru_backward.share(workers, da, dr, panels, dh, dy, gates, old, inner, *_walked(walk), block)
    return da, dr


__all__ = ["gru_backward", "gru_forward", "lstm_backward", "lstm_forward"]
