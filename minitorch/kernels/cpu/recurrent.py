"""LSTM and GRU over a whole sequence on float32, each block of the batch by one thread.

Sequences do not depend on each other, so that a thread goes through all steps of its sequences
without waiting for the others. What the bodies compute stands in `ops/recurrent_steps.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from .. import threads
from .kernel import FAST, inlined, kernel
from .panels import Jobs
from .scalars import exp_f32, logistic
from .vector import COLUMNS, FEW_ROWS, ROWS, multiply_four, multiply_six

_F = np.float32
_ONE = _F(1)
_ITEMSIZE = 4
_PAGE = 4096  # bytes
_TERMS = 256  # of a panel of weights, which stay in the first cache for all rows


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


@inlined
def _multiply(a, panels, start, start_step, out, out_step, rows, columns):  # type: ignore[no-untyped-def]
    """out = start + a @ weights; BLAS would put the weights in order for each such product.

    Args:
        a: f32[R, K] in one piece, with as many rows as whole tiles have.
        panels: The weights, as `panels_of` puts them.
        start: Address of what is added to; may be `out`.
        start_step: Bytes from one row of it to the next.
        out: Address of the result.
        out_step: Bytes from one row of it to the next.
        rows: How many rows there are.
        columns: How many columns there are.
    """
    k = a.shape[1]
    step = _ITEMSIZE * k
    for t in range(0, k, _TERMS):
        for p in range(len(panels)):
            b = panels.ctypes.data + _ITEMSIZE * COLUMNS * (p * k + t)
            have, terms = columns - p * COLUMNS, min(_TERMS, k - t)
            for r in range(0, rows, ROWS):
                left = a.ctypes.data + r * step + _ITEMSIZE * t
                old = (start if t == 0 else out) + _ITEMSIZE * COLUMNS * p
                old_step = start_step if t == 0 else out_step
                old += r * old_step
                new = out + r * out_step + _ITEMSIZE * COLUMNS * p
                if rows - r > FEW_ROWS:
                    multiply_six(
                        *(left, step, _ITEMSIZE, b, terms, old, old_step),
                        *(new, out_step, rows - r, have),
                    )
                else:
                    multiply_four(
                        *(left, step, _ITEMSIZE, b, terms, old, old_step),
                        *(new, out_step, rows - r, have),
                    )


def panels_of(weights: Any) -> Any:
    """weights_KN as f32[⌈N / COLUMNS⌉, K, COLUMNS], filled up with zeros."""
    k, n = weights.shape
    whole, rest = divmod(n, COLUMNS)
    out = (np.zeros if rest else np.empty)((whole + (rest > 0), k, COLUMNS), np.float32)
    out[:whole] = weights[:, : n - rest].reshape(k, whole, COLUMNS).swapaxes(0, 1)
    if rest:
        out[whole, :, :rest] = weights[:, n - rest :]
    return out


@inlined
def _squash_sigmoid(row):  # type: ignore[no-untyped-def]
    for j in range(len(row)):
        row[j] = logistic(row[j])[0]


@inlined
def _squash_tanh(row):  # type: ignore[no-untyped-def]
    for j in range(len(row)):
        row[j] = tanh_f32(row[j])


@kernel(fastmath=FAST)
def _lstm_forward(first, last, gates, panels, h, c, y, old, cells, squashed, steps, block):  # type: ignore[no-untyped-def]
    n, step = h.shape[1], _ITEMSIZE * gates.shape[1]
    hidden = np.zeros((block + ROWS, n), _F)
    for start in range(first * block, min(last * block, len(h)), block):
        rows = min(block, len(h) - start)
        for r in range(rows):
            for j in range(n):
                hidden[r, j] = h[start + r, j]
        for t in range(len(steps)):
            live = min(rows, steps[t, 1] - start)
            if live <= 0:
                continue
            line = steps[t, 0] + start
            place = gates.ctypes.data + line * step
            _multiply(hidden, panels, place, step, place, step, live, 4 * n)
            for r in range(live):
                at = line + r
                a = gates[at]
                i, f, g, o = a[:n], a[n : 2 * n], a[2 * n : 3 * n], a[3 * n : 4 * n]
                _squash_sigmoid(a[: 2 * n])
                _squash_tanh(g)
                _squash_sigmoid(o)
                cell, now, before = c[start + r], hidden[r], cells[at]
                tanh, out, last_h = squashed[at], y[at], old[at]
                for j in range(n):
                    last_h[j] = now[j]
                    before[j] = cell[j]
                    value = f[j] * cell[j] + i[j] * g[j]
                    cell[j] = value
                    squash = tanh_f32(value)
                    tanh[j] = squash
                    now[j] = o[j] * squash
                    out[j] = now[j]
        for r in range(rows):
            for j in range(n):
                h[start + r, j] = hidden[r, j]


@kernel(fastmath=FAST)
def _lstm_backward(  # type: ignore[no-untyped-def]
    first, last, da, panels, zeros, dh, dc, dy, gates, cells, squashed, steps, block
):
    n = dh.shape[1]
    slopes, flow = np.zeros((block + ROWS, 4 * n), _F), np.empty((block, n), _F)
    for start in range(first * block, min(last * block, len(dh)), block):
        rows = min(block, len(dh) - start)
        for r in range(rows):
            for j in range(n):
                flow[r, j] = dh[start + r, j]
        for t in range(len(steps)):
            live = min(rows, steps[t, 1] - start)
            if live <= 0:
                continue
            for r in range(live):
                at = steps[t, 0] + start + r
                a, d, into = gates[at], slopes[r], da[at]
                i, f, g, o = a[:n], a[n : 2 * n], a[2 * n : 3 * n], a[3 * n : 4 * n]
                di, df, dg, do = d[:n], d[n : 2 * n], d[2 * n : 3 * n], d[3 * n :]
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
                for j in range(4 * n):
                    into[j] = d[j]
            to, step = flow.ctypes.data, _ITEMSIZE * n
            _multiply(slopes, panels, zeros.ctypes.data, 0, to, step, live, n)
        for r in range(rows):
            for j in range(n):
                dh[start + r, j] = flow[r, j]


@kernel(fastmath=FAST)
def _gru_forward(first, last, gates, panels, bias, h, y, old, inner, steps, block):  # type: ignore[no-untyped-def]
    n = h.shape[1]
    hidden, recurrent = np.zeros((block + ROWS, n), _F), np.empty((block, 3 * n), _F)
    for start in range(first * block, min(last * block, len(h)), block):
        rows = min(block, len(h) - start)
        for r in range(rows):
            for j in range(n):
                hidden[r, j] = h[start + r, j]
        for t in range(len(steps)):
            live = min(rows, steps[t, 1] - start)
            if live <= 0:
                continue
            to, step = recurrent.ctypes.data, _ITEMSIZE * 3 * n
            _multiply(hidden, panels, bias.ctypes.data, 0, to, step, live, 3 * n)
            for row in range(live):
                at = steps[t, 0] + start + row
                a, extra = gates[at], recurrent[row]
                r, z, new, third = a[:n], a[n : 2 * n], a[2 * n :], extra[2 * n :]
                part, before, now, out = inner[at], old[at], hidden[row], y[at]
                for j in range(2 * n):
                    a[j] += extra[j]
                _squash_sigmoid(a[: 2 * n])
                for j in range(n):
                    part[j] = third[j]
                    before[j] = now[j]
                    new[j] = tanh_f32(new[j] + r[j] * third[j])
                    now[j] = new[j] + z[j] * (now[j] - new[j])
                    out[j] = now[j]
        for r in range(rows):
            for j in range(n):
                h[start + r, j] = hidden[r, j]


@kernel(fastmath=FAST)
def _gru_backward(first, last, da, dr, panels, dh, dy, gates, old, inner, steps, block):  # type: ignore[no-untyped-def]
    n = dh.shape[1]
    slopes, through = np.zeros((block + ROWS, 3 * n), _F), np.zeros((block, n), _F)
    flow = np.empty((block, n), _F)
    for start in range(first * block, min(last * block, len(dh)), block):
        rows = min(block, len(dh) - start)
        for r in range(rows):
            for j in range(n):
                flow[r, j] = dh[start + r, j]
        for t in range(len(steps)):
            live = min(rows, steps[t, 1] - start)
            if live <= 0:
                continue
            for row in range(live):
                at = steps[t, 0] + start + row
                a, d, into, back = gates[at], slopes[row], da[at], flow[row]
                r, z, new = a[:n], a[n : 2 * n], a[2 * n :]
                d_r, d_z, d_n = d[:n], d[n : 2 * n], d[2 * n :]
                given, before, part, direct = dy[at], old[at], inner[at], through[row]
                i_r, i_z, i_n, whole = into[:n], into[n : 2 * n], into[2 * n :], dr[at]
                for j in range(n):
                    out = back[j] + given[j]
                    slope = out * (_ONE - z[j]) * (_ONE - new[j] * new[j])
                    i_n[j] = slope
                    d_n[j] = slope * r[j]
                    d_r[j] = slope * part[j] * r[j] * (_ONE - r[j])
                    d_z[j] = out * (before[j] - new[j]) * z[j] * (_ONE - z[j])
                    i_r[j] = d_r[j]
                    i_z[j] = d_z[j]
                    direct[j] = out * z[j]
                for j in range(3 * n):
                    whole[j] = d[j]
            to, step = flow.ctypes.data, _ITEMSIZE * n
            _multiply(slopes, panels, through.ctypes.data, step, to, step, live, n)
        for r in range(rows):
            for j in range(n):
                dh[start + r, j] = flow[r, j]


def _walked(walk: Any) -> Any:
    """First row and number of rows of each step, in the order of the walk."""
    return np.array([(first, end - first) for _, first, end in walk], np.int64).reshape(-1, 2)


def _shares(batch: int) -> tuple[int, int, int]:
    """How many threads work, blocks of sequences, one for each, and sequences of a block."""
    many = min(threads.count(), -(-batch // FEW_ROWS))
    block = -(-batch // many)
    return many if many > 1 else 0, -(-batch // block), block


def _together(shape: tuple[int, int], *first: Any) -> tuple[Any, list[Any]]:
    """Flat memory, and in it the states of all rows, to be filled, and copies of the first ones."""
    ends = np.cumsum([shape[0] * shape[1], *[a.size for a in first]])
    flat = np.empty(ends[-1], _F)
    parts = [flat[: ends[0]].reshape(shape)]
    for start, end, a in zip(ends, ends[1:], first, strict=False):
        parts.append(flat[start:end].reshape(a.shape))
        parts[-1][...] = a
    return flat, parts


def _apart(rows: int, width: int) -> Any:
    """New rows that hold `width` numbers and do not all begin at one place of their pages.

    Else a step's rows would lie in the same few sets of the first cache.
    """
    gap = COLUMNS if _ITEMSIZE * width % _PAGE == 0 else 0
    return np.empty((rows, width + gap), _F)


def lstm_forward(
    x: Any, w_ih: Any, bias: Any, h0: Any, c0: Any, w_hh: Any, walk: Any
) -> tuple[Any, Any]:
    """As `recurrent_steps`, flat; the gates may lie in wider rows."""
    shape = len(x), h0.shape[1]
    gates = _apart(len(x), len(w_ih))
    jobs = Jobs()
    bias = None if bias is None else np.ascontiguousarray(bias)
    jobs.add_product(gates[:, : len(w_ih)], x, w_ih.T, bias)
    jobs.compute()
    flat, (y, h, c) = _together(shape, h0, c0)
    old, cells, squashed = (np.empty(shape, _F) for _ in range(3))
    workers, blocks, block = _shares(len(h))
    given = (gates, panels_of(w_hh.T), h, c, y, old, cells, squashed, _walked(walk), block)
    _lstm_forward.share(workers, blocks, *given)
    return flat, (gates, old, cells, squashed)


def lstm_backward(dy: Any, dh: Any, dc: Any, residuals: Any, w_hh: Any, walk: Any) -> Any:
    """The slopes of the gates; `dh` and `dc` become the gradients of the first states."""
    gates, _, cells, squashed = residuals
    da = _apart(len(gates), len(w_hh))
    workers, blocks, block = _shares(len(dh))
    panels, zeros, dy = panels_of(w_hh), np.zeros(dh.shape[1], _F), np.ascontiguousarray(dy)
    given = (da, panels, zeros, dh, dc, dy, gates, cells, squashed, _walked(walk), block)
    _lstm_backward.share(workers, blocks, *given)
    return da[:, : len(w_hh)]


def gru_forward(gates: Any, h0: Any, w_hh: Any, b_hh: Any, walk: Any) -> tuple[Any, Any]:
    """As `recurrent_steps`, flat, from the input's part of the gates, which it overwrites."""
    shape = len(gates), h0.shape[1]
    flat, (y, h) = _together(shape, h0)
    old, inner = (np.empty(shape, _F) for _ in range(2))
    bias = np.zeros(gates.shape[1], _F) if b_hh is None else np.ascontiguousarray(b_hh)
    workers, blocks, block = _shares(len(h))
    given = (gates, panels_of(w_hh.T), bias, h, y, old, inner, _walked(walk), block)
    _gru_forward.share(workers, blocks, *given)
    return flat, (gates, old, inner)


def gru_backward(dy: Any, dh: Any, residuals: Any, w_hh: Any, walk: Any) -> tuple[Any, Any]:
    """The slopes of the input's and of the recurrent part; `dh` becomes the gradient of h0."""
    gates, old, inner = residuals
    da, dr = np.empty(gates.shape, _F), np.empty(gates.shape, _F)
    workers, blocks, block = _shares(len(dh))
    panels, dy = panels_of(w_hh), np.ascontiguousarray(dy)
    given = (da, dr, panels, dh, dy, gates, old, inner, _walked(walk), block)
    _gru_backward.share(workers, blocks, *given)
    return da, dr


__all__ = ["gru_backward", "gru_forward", "lstm_backward", "lstm_forward"]
