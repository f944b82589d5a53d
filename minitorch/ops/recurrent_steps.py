"""The fast bodies of recurrent layers on arrays; what they compute stands in `recurrent.py`.

`forward` takes an input x_NI, or its distinct rows and which of them each row is (`place`).
It gives (hidden states of all rows, last hidden states, last cell states), or all three in
one flat array, and what `backward` needs. `backward` gives the gradients before the activations,
`da` of the input's part and `dr` of the recurrent part, then the old hidden state of each row, and
the gradients of h0, c0 and w_hr.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .. import backend
from ..kernels import load, load_for
from ..kernels.loader import LEAST
from .product import product


class Walk(NamedTuple):
    """In which order the steps of a layer are computed, and where their rows are.

    Attributes:
        steps: The rows of each step, as a slice, and how many they are.
        table: The same for kernels, i64[T, 3]: first row, how many, and from one to the next.
    """

    steps: tuple[tuple[slice, int], ...]
    table: Any


@functools.lru_cache(64)
def walk_of(sizes: tuple[int, ...], reverse: bool, batch_first: bool) -> Walk:
    """The steps from first to last, or back.

    Args:
        sizes: Number of rows of each step.
        reverse: Whether the last step is the first one.
        batch_first: Whether the rows of a sequence lie one after the other, not those of a step.
    """
    length = len(sizes)
    ends = np.cumsum([0, *sizes]).tolist()
    parts = [
        slice(t, None, length) if batch_first else slice(ends[t], ends[t + 1])
        for t in range(length)
    ]
    order = list(zip(parts, sizes, strict=True))[:: -1 if reverse else 1]
    table = [(part.start, rows, part.step or 1) for part, rows in order]
    return Walk(tuple(order), np.array(table, np.int64).reshape(-1, 3))


class Mode(NamedTuple):
    """The two bodies of one kind of cell."""

    forward: Any
    backward: Any


def _compiled(*arrays: Any, least: int = LEAST) -> Any:
    """The compiled bodies for float32 arrays, the first with `least` numbers or more, or None."""
    return load_for("recurrent", *arrays, kinds="f", contiguous=True, least=least)


def _both(a: Any, b: Any) -> Any:
    """The sum of two biases of which either may be missing."""
    return b if a is None else _sum(a, b)


def _sum(a: Any, b: Any) -> Any:
    return a if b is None else a + b


def _sigmoid_from_half(a: Any) -> None:
    """σ(2a) in place of a: `(1 + tanh a) / 2`, since tanh is one fast call for all gates."""
    a *= 0.5
    a += 0.5


def _input_part(x: Any, w_ih: Any, bias: Any, place: Any) -> Any:
    """The product of all rows with the weight, from that of the distinct ones."""
    if place is None:
        return product(x, w_ih.T, bias)
    kernels: Any = load("recurrent")
    return kernels.input_part(x, w_ih, bias)[:, : len(w_ih)].take(place, 0)


def _lstm_forward(
    x: Any,
    h0: Any,
    c0: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    w_hr: Any,
    *,
    walk: Walk,
    place: Any,
) -> Any:
    xp, n = backend.namespace(x), c0.shape[1]
    large = place is not None or (len(x) * len(w_ih) >= LEAST and x.size > 0)
    kernels = _compiled(h0, c0, w_hh, least=1) if w_hr is None and large else None
    if kernels is not None:
        return kernels.lstm_forward(x, w_ih, _both(b_ih, b_hh), h0, c0, w_hh, walk, place)
    gates = _input_part(x, w_ih, _both(b_ih, b_hh), place)
    half = xp.full((4 * n,), 0.5, x.dtype)
    half[2 * n : 3 * n] = 1
    gates *= half
    recurrent = xp.ascontiguousarray(w_hh.T * half)
    old = xp.empty((len(gates), h0.shape[1]), x.dtype)
    y = xp.empty_like(old)
    cells = [xp.empty((len(gates), n), x.dtype) for _ in range(2)]
    h, c = h0.copy(), c0.copy()
    for part, rows in walk.steps:
        a = gates[part]
        old[part], cells[0][part] = h[:rows], c[:rows]
        a += h[:rows] @ recurrent
        xp.tanh(a, out=a)
        _sigmoid_from_half(a[:, : 2 * n])
        _sigmoid_from_half(a[:, 3 * n :])
        new = c[:rows]
        new *= a[:, n : 2 * n]
        new += a[:, :n] * a[:, 2 * n : 3 * n]
        squashed = cells[1][part]
        xp.tanh(new, out=squashed)
        out = a[:, 3 * n :] * squashed
        y[part] = out if w_hr is None else out @ w_hr.T
        h[:rows] = y[part]
    return (y, h, c), (gates, old, *cells)


def _lstm_backward(
    dy: Any, dh: Any, dc: Any, residuals: Any, w_hh: Any, w_hr: Any, *, walk: Walk
) -> Any:
    gates, old, old_cells, squashed = residuals
    kernels = _compiled(gates, dh, dc, w_hh) if w_hr is None else None
    if kernels is not None:
        da = kernels.lstm_backward(dy, dh, dc, residuals, w_hh, walk)
        return da, da, old, dh, dc, None
    xp, n = backend.namespace(dy), dc.shape[1]
    gates = gates[:, : 4 * n]
    i, f, g, o = (gates[:, k * n : (k + 1) * n] for k in range(4))
    through = o * (1 - squashed * squashed)
    slopes = xp.empty_like(gates).reshape(len(gates), 4, n)
    slopes[:, 0] = i * (1 - i) * g
    slopes[:, 1] = f * (1 - f) * old_cells
    slopes[:, 2] = (1 - g * g) * i
    slopes[:, 3] = o * (1 - o) * squashed
    das = xp.empty_like(slopes)
    dys = xp.empty_like(dy) if w_hr is not None else None
    for part, rows in walk.steps:
        dout = dh[:rows] + dy[part]
        if dys is not None:
            dys[part] = dout
            dout = dout @ w_hr
        dcell = dc[:rows]
        dcell += dout * through[part]
        das[part, :3] = slopes[part, :3] * dcell[:, None]
        das[part, 3] = slopes[part, 3] * dout
        dcell *= f[part]
        dh[:rows] = das[part].reshape(rows, 4 * n) @ w_hh
    da = das.reshape(len(gates), 4 * n)
    dw_hr = None if dys is None else dys.T @ (o * squashed)
    return da, da, old, dh, dc, dw_hr


def _gru_forward(
    x: Any,
    h0: Any,
    c0: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any,
    b_hh: Any,
    w_hr: Any,
    *,
    walk: Walk,
    place: Any,
) -> Any:
    xp, n = backend.namespace(x), h0.shape[1]
    gates = _input_part(x, w_ih, b_ih, place)
    kernels = _compiled(gates, h0, w_hh)
    if kernels is not None:
        return kernels.gru_forward(gates, h0, w_hh, b_hh, walk)
    gates[:, : 2 * n] *= 0.5
    recurrent = xp.ascontiguousarray(w_hh.T)
    old, y, inner = (xp.empty((len(gates), n), x.dtype) for _ in range(3))
    h = h0.copy()
    for part, rows in walk.steps:
        a = gates[part]
        r = _sum(h[:rows] @ recurrent, b_hh)
        old[part], inner[part] = h[:rows], r[:, 2 * n :]
        both = a[:, : 2 * n]
        both += r[:, : 2 * n] * 0.5
        xp.tanh(both, out=both)
        _sigmoid_from_half(both)
        new = a[:, 2 * n :]
        new += a[:, :n] * inner[part]
        xp.tanh(new, out=new)
        y[part] = new + a[:, n : 2 * n] * (h[:rows] - new)
        h[:rows] = y[part]
    return (y, h), (gates, old, inner)


def _gru_backward(
    dy: Any, dh: Any, dc: Any, residuals: Any, w_hh: Any, w_hr: Any, *, walk: Walk
) -> Any:
    gates, old, inner = residuals
    kernels = _compiled(gates, dh, w_hh)
    if kernels is not None:
        da, dr = kernels.gru_backward(dy, dh, residuals, w_hh, walk)
        return da, dr, old, dh, None, None
    xp, n = backend.namespace(dy), dh.shape[1]
    r, z, new = (gates[:, k * n : (k + 1) * n] for k in range(3))
    # Each gate's slope with respect to the new hidden state.
    slopes = xp.empty_like(gates).reshape(len(gates), 3, n)
    slopes[:, 2] = (1 - z) * (1 - new * new)
    slopes[:, 1] = (old - new) * z * (1 - z)
    slopes[:, 0] = slopes[:, 2] * inner * r * (1 - r)
    recurrent = slopes.copy()
    recurrent[:, 2] *= r
    dhs = xp.empty_like(old)
    for part, rows in walk.steps:
        dout = dhs[part]
        dout[...] = dh[:rows]
        dout += dy[part]
        dr = recurrent[part]
        dr *= dout[:, None]
        dh[:rows] = dout * z[part] + dr.reshape(rows, 3 * n) @ w_hh
    slopes *= dhs[:, None]
    flat = gates.shape
    return slopes.reshape(flat), recurrent.reshape(flat), old, dh, None, None


def _plain_forward(name: str) -> Any:
    def forward(
        x: Any,
        h0: Any,
        c0: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any,
        b_hh: Any,
        w_hr: Any,
        *,
        walk: Walk,
        place: Any,
    ) -> Any:
        xp = backend.namespace(x)
        y = _input_part(x, w_ih, _both(b_ih, b_hh), place)
        kernels = load_for("rnn", y, h0, w_hh, kinds="f", contiguous=True)
        if kernels is not None:
            y, h, old = kernels.forward(y, h0, w_hh, walk, name == "tanh")
            return (y, h), (y, old)
        recurrent = xp.ascontiguousarray(w_hh.T)
        old = xp.empty_like(y)
        h = h0.copy()
        for part, rows in walk.steps:
            a = y[part]
            old[part] = h[:rows]
            a += h[:rows] @ recurrent
            if name == "tanh":
                xp.tanh(a, out=a)
            else:
                xp.maximum(a, 0, out=a)
            h[:rows] = a
        return (y, h), (y, old)

    return forward


def _plain_backward(name: str) -> Any:
    def backward(
        dy: Any, dh: Any, dc: Any, residuals: Any, w_hh: Any, w_hr: Any, *, walk: Walk
    ) -> Any:
        y, old = residuals
        kernels = load_for("rnn", y, dh, w_hh, kinds="f", contiguous=True)
        if kernels is not None:
            da = kernels.backward(dy, dh, y, w_hh, walk, name == "tanh")
            return da, da, old, dh, None, None
        da = 1 - y * y if name == "tanh" else (y > 0).astype(y.dtype)
        for part, rows in walk.steps:
            d = da[part]
            d *= dh[:rows] + dy[part]
            dh[:rows] = d @ w_hh
        return da, da, old, dh, None, None

    return backward


MODES = {
    "LSTM": Mode(_lstm_forward, _lstm_backward),
    "GRU": Mode(_gru_forward, _gru_backward),
    "RNN_TANH": Mode(_plain_forward("tanh"), _plain_backward("tanh")),
    "RNN_RELU": Mode(_plain_forward("relu"), _plain_backward("relu")),
}
