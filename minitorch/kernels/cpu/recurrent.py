"""LSTM and GRU over a whole sequence on float32, each block of the batch by one thread.

Sequences do not depend on each other, so that a thread goes through all steps of its sequences
without waiting for the others. What the bodies compute stands in `ops/recurrent_steps.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.extending import register_jitable

from .embedding import add_rows
from .kernel import FAST, inlined, kernel
from .panels import Jobs
from .scalars import logistic, tanh_f32
from .sequences import give, multiply, panels_of, shares, spaced, take, whole_rows
from .vector import ROWS

_F = np.float32
_ONE = _F(1)
_ITEMSIZE = 4
_NOWHERE = np.empty(0, np.int64)
# Compiled as a function of its own, without the liberties that the bodies here have.
_tanh = register_jitable(tanh_f32.py_func)


@inlined
def _squash_sigmoid(row):  # type: ignore[no-untyped-def]
    for j in range(len(row)):
        row[j] = logistic(row[j])[0]


@inlined
def _squash_tanh(row):  # type: ignore[no-untyped-def]
    for j in range(len(row)):
        row[j] = _tanh(row[j])


@kernel(fastmath=FAST)
def _lstm_forward(  # type: ignore[no-untyped-def]
    first, last, gates, panels, h, c, y, old, cells, squashed, steps, block, inputs, place
):
    n, step = h.shape[1], _ITEMSIZE * gates.shape[1]
    hidden = np.zeros((block + ROWS, n), _F)
    for start in range(first * block, min(last * block, len(h)), block):
        rows = min(block, len(h) - start)
        take(hidden, h, start, rows)
        for t in range(len(steps)):
            live, apart = min(rows, steps[t, 1] - start), steps[t, 2]
            if live <= 0:
                continue
            line = steps[t, 0] + start * apart
            for r in range(live if len(place) else 0):
                a, known = gates[line + r * apart], inputs[place[line + r * apart]]
                for j in range(4 * n):
                    a[j] = known[j]
            to = gates.ctypes.data + line * step
            multiply(hidden, panels, to, apart * step, to, apart * step, live, 4 * n)
            for r in range(live):
                at = line + r * apart
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
                    squash = _tanh(value)
                    tanh[j] = squash
                    now[j] = o[j] * squash
                    out[j] = now[j]
        give(hidden, h, start, rows)


@kernel(fastmath=FAST)
def _lstm_backward(  # type: ignore[no-untyped-def]
    first, last, da, panels, zeros, dh, dc, dy, gates, cells, squashed, steps, block
):
    n = dh.shape[1]
    slopes, flow = np.zeros((block + ROWS, da.shape[1]), _F), np.empty((block, n), _F)
    for start in range(first * block, min(last * block, len(dh)), block):
        rows = min(block, len(dh) - start)
        take(flow, dh, start, rows)
        for t in range(len(steps)):
            live, apart = min(rows, steps[t, 1] - start), steps[t, 2]
            if live <= 0:
                continue
            line = steps[t, 0] + start * apart
            for r in range(live):
                at = line + r * apart
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
                for j in range(4 * n):
                    into[j] = d[j]
            to, step = flow.ctypes.data, _ITEMSIZE * n
            multiply(slopes, panels, zeros.ctypes.data, 0, to, step, live, n)
        give(flow, dh, start, rows)


@kernel(fastmath=FAST)
def _gru_forward(first, last, gates, panels, bias, h, y, old, inner, steps, block):  # type: ignore[no-untyped-def]
    n = h.shape[1]
    hidden, recurrent = np.zeros((block + ROWS, n), _F), np.empty((block, 3 * n), _F)
    for start in range(first * block, min(last * block, len(h)), block):
        rows = min(block, len(h) - start)
        take(hidden, h, start, rows)
        for t in range(len(steps)):
            live, apart = min(rows, steps[t, 1] - start), steps[t, 2]
            if live <= 0:
                continue
            line = steps[t, 0] + start * apart
            to, step = recurrent.ctypes.data, _ITEMSIZE * 3 * n
            multiply(hidden, panels, bias.ctypes.data, 0, to, step, live, 3 * n)
            for row in range(live):
                at = line + row * apart
                a, extra = gates[at], recurrent[row]
                r, z, new, third = a[:n], a[n : 2 * n], a[2 * n :], extra[2 * n :]
                part, before, now, out = inner[at], old[at], hidden[row], y[at]
                for j in range(2 * n):
                    a[j] += extra[j]
                _squash_sigmoid(a[: 2 * n])
                for j in range(n):
                    part[j] = third[j]
                    before[j] = now[j]
                    new[j] = _tanh(new[j] + r[j] * third[j])
                    now[j] = new[j] + z[j] * (now[j] - new[j])
                    out[j] = now[j]
        give(hidden, h, start, rows)


@kernel(fastmath=FAST)
def _gru_backward(first, last, da, dr, panels, dh, dy, gates, old, inner, steps, block):  # type: ignore[no-untyped-def]
    n = dh.shape[1]
    slopes, through = np.zeros((block + ROWS, da.shape[1]), _F), np.zeros((block, n), _F)
    flow = np.empty((block, n), _F)
    for start in range(first * block, min(last * block, len(dh)), block):
        rows = min(block, len(dh) - start)
        take(flow, dh, start, rows)
        for t in range(len(steps)):
            live, apart = min(rows, steps[t, 1] - start), steps[t, 2]
            if live <= 0:
                continue
            line = steps[t, 0] + start * apart
            for row in range(live):
                at = line + row * apart
                a, d, into, back = gates[at], slopes[row], da[at], flow[row]
                r, z, new = a[:n], a[n : 2 * n], a[2 * n :]
                d_r, d_z, d_n = d[:n], d[n : 2 * n], d[2 * n : 3 * n]
                given, before, part, direct = dy[at], old[at], inner[at], through[row]
                i_r, i_z, i_n, whole = into[:n], into[n : 2 * n], into[2 * n : 3 * n], dr[at]
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
            multiply(slopes, panels, through.ctypes.data, step, to, step, live, n)
        give(flow, dh, start, rows)


def _together(shape: tuple[int, int], *first: Any) -> tuple[Any, list[Any]]:
    """Flat memory, and in it the states of all rows, to be filled, and copies of the first ones."""
    ends = np.cumsum([shape[0] * shape[1], *[a.size for a in first]])
    flat = np.empty(ends[-1], _F)
    parts = [flat[: ends[0]].reshape(shape)]
    for start, end, a in zip(ends, ends[1:], first, strict=False):
        parts.append(flat[start:end].reshape(a.shape))
        parts[-1][...] = a
    return flat, parts


def input_part(x: Any, w_ih: Any, bias: Any) -> Any:
    """x_NK @ w_ih.T + bias; the rows may be wider."""
    out = np.empty((len(x), spaced(len(w_ih))), _F)
    jobs = Jobs()
    bias = None if bias is None else np.ascontiguousarray(bias)
    jobs.add_product(out[:, : len(w_ih)], x, w_ih.T, bias)
    jobs.compute()
    return out


def input_gradients(
    da: Any, w_ih: Any, rows: Any, place: Any, needs: Sequence[bool]
) -> Sequence[Any]:
    """The gradients of distinct rows, of their weight and of a bias, None if not needed.

    Args:
        da: f32[N, G], the gradient of all rows times w_ih.T.
        w_ih: f32[G, K].
        rows: f32[U, K], the distinct ones.
        place: int64[N], which of them each is.
        needs: Which are needed.
    """
    sums = np.zeros((len(rows), len(w_ih)), _F)
    add_rows(sums, place, whole_rows(da))
    found: list[Any] = [None] * 3
    jobs = Jobs()
    if needs[0]:
        found[0] = np.empty(rows.shape, _F)
        jobs.add_product(found[0], sums, w_ih)
    if needs[1]:
        found[1] = np.empty(w_ih.shape, _F)
        jobs.add_product(found[1], sums.T, rows)
    if needs[2]:
        found[2] = np.empty(len(w_ih), _F)
        jobs.add_sums(found[2], sums)
    if any(needs):
        jobs.compute()
    return found


def lstm_forward(
    x: Any, w_ih: Any, bias: Any, h0: Any, c0: Any, w_hh: Any, walk: Any, place: Any
) -> tuple[Any, Any]:
    """As `recurrent_steps`, flat; the gates may lie in wider rows."""
    inputs = input_part(x, w_ih, bias)
    if place is None:
        gates, inputs, place = inputs, inputs[:0], _NOWHERE
    else:
        gates = np.empty((len(place), inputs.shape[1]), _F)
    shape = len(gates), h0.shape[1]
    flat, (y, h, c) = _together(shape, h0, c0)
    old, cells, squashed = (np.empty(shape, _F) for _ in range(3))
    workers, blocks, block = shares(len(h))
    given = (gates, panels_of(w_hh.T), h, c, y, old, cells, squashed, walk.table, block)
    _lstm_forward.share(workers, blocks, *given, inputs, place)
    return flat, (gates, old, cells, squashed)


def lstm_backward(dy: Any, dh: Any, dc: Any, residuals: Any, w_hh: Any, walk: Any) -> Any:
    """The slopes of the gates; `dh` and `dc` become the gradients of the first states."""
    gates, _, cells, squashed = residuals
    da = np.empty((len(gates), spaced(len(w_hh))), _F)
    workers, blocks, block = shares(len(dh))
    panels, zeros, dy = panels_of(w_hh), np.zeros(dh.shape[1], _F), np.ascontiguousarray(dy)
    given = (da, panels, zeros, dh, dc, dy, gates, cells, squashed, walk.table, block)
    _lstm_backward.share(workers, blocks, *given)
    return da[:, : len(w_hh)]


def gru_forward(gates: Any, h0: Any, w_hh: Any, b_hh: Any, walk: Any) -> tuple[Any, Any]:
    """As `recurrent_steps`, flat, from the input's part of the gates, which it overwrites."""
    shape = len(gates), h0.shape[1]
    flat, (y, h) = _together(shape, h0)
    old, inner = (np.empty(shape, _F) for _ in range(2))
    bias = np.zeros(gates.shape[1], _F) if b_hh is None else np.ascontiguousarray(b_hh)
    workers, blocks, block = shares(len(h))
    given = (gates, panels_of(w_hh.T), bias, h, y, old, inner, walk.table, block)
    _gru_forward.share(workers, blocks, *given)
    return flat, (gates, old, inner)


def gru_backward(dy: Any, dh: Any, residuals: Any, w_hh: Any, walk: Any) -> tuple[Any, Any]:
    """The slopes of the input's and of the recurrent part; `dh` becomes the gradient of h0."""
    gates, old, inner = residuals
    da, dr = np.empty(gates.shape, _F), np.empty(gates.shape, _F)
    workers, blocks, block = shares(len(dh))
    panels, dy = panels_of(w_hh), np.ascontiguousarray(dy)
    given = (da, dr, panels, dh, dy, gates, old, inner, walk.table, block)
    _gru_backward.share(workers, blocks, *given)
    return da, dr


__all__ = [
    "gru_backward",
    "gru_forward",
    "input_gradients",
    "input_part",
    "lstm_backward",
    "lstm_forward",
]
