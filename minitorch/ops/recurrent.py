"""Recurrent layers over a whole sequence in one node: one direction of one layer.

Rows of all steps lie one after the other, as in a PackedSequence: step t has `sizes[t]` of them,
and sizes never grow. Row i of a step belongs to sequence i, and a sequence that has ended keeps
its state. With `batch_first` all sequences are of one length, and the rows of each lie one after
the other: such a batch is read, and its states are written, as it lies. The input product is one
product for all steps, and so are those of the weight gradients; only the recurrent product is one
per step. Where the rows are those of a table, each distinct one is multiplied once (`distinct.py`).

The result is flat, since a node has one output: the hidden states of all rows, the last hidden
state of each sequence and, for LSTM, its last cell state.

Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997; Cho et al., Learning Phrase
Representations using RNN Encoder-Decoder, 2014.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from .. import backend
from ..autograd.node import Node
from ..autograd.parts import Parts, assemble
from ..kernels import load_for
from . import elementwise as el
from . import joining, linalg
from .distinct import Distinct, distinct_rows, numbers_of, past_lookup, table_of
from .embedding import collect
from .fused import Fused
from .product import column_sums, linear_gradients, product
from .recurrent_steps import MODES, walk_of
from .wide import wide, wide_dtype


def _lstm_step(a: Any, r: Any, h: Any, c: Any, w_hr: Any) -> tuple[Any, Any]:
    i, f, g, o = joining.chunk(a + r, 4, 1)
    c = el.sigmoid(f) * c + el.sigmoid(i) * el.tanh(g)
    h = el.sigmoid(o) * el.tanh(c)
    return (h if w_hr is None else linalg.linear(h, w_hr)), c


def _gru_step(a: Any, r: Any, h: Any, c: Any, w_hr: Any) -> tuple[Any, Any]:
    a_r, a_z, a_n = joining.chunk(a, 3, 1)
    h_r, h_z, h_n = joining.chunk(r, 3, 1)
    n = el.tanh(a_n + el.sigmoid(a_r + h_r) * h_n)
    return n + el.sigmoid(a_z + h_z) * (h - n), None


_STEPS = {
    "LSTM": _lstm_step,
    "GRU": _gru_step,
    "RNN_TANH": lambda a, r, h, c, w_hr: (el.tanh(a + r), None),
    "RNN_RELU": lambda a, r, h, c, w_hr: (el.relu(a + r), None),
}


def _recurrent(
    x: Any,
    h0: Any,
    c0: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    w_hr: Any = None,
    *,
    mode: str,
    sizes: tuple[int, ...],
    reverse: bool,
    batch_first: bool = False,
    index: Any = None,
    rows: int = 0,
    padding: int | None = None,
    moves: tuple[Any, ...] = (),
) -> Any:
    inputs = linalg.linear(x, w_ih, b_ih)
    outs: list[Any] = []
    h, c = h0, c0
    for part, n in walk_of(sizes, reverse, batch_first).steps:
        old = h[:n], None if c is None else c[:n]
        recurrent = linalg.linear(old[0], w_hh, b_hh)
        new_h, new_c = _STEPS[mode](inputs[part], recurrent, *old, w_hr)
        outs.append(new_h)
        h = joining.cat([new_h, h[n:]])
        c = None if c is None else joining.cat([new_c, c[n:]])
    outs = outs[:: -1 if reverse else 1]
    outs = [joining.stack(outs, 1)] if batch_first else outs
    parts = [*outs, h] if c is None else [*outs, h, c]
    return joining.cat([p.reshape(-1) for p in parts])


def _forward(
    *arrays: Any,
    mode: str,
    sizes: tuple[int, ...],
    reverse: bool,
    batch_first: bool = False,
    index: Any = None,
    rows: int = 0,
    padding: int | None = None,
    moves: tuple[Any, ...] = (),
) -> Any:
    given: list[Any] = [None if a is None else wide(a) for a in arrays]
    x, h0, c0, *weights = given
    walk = walk_of(sizes, reverse, batch_first)
    found = None
    if index is not None and load_for("recurrent", x, weights[0], kinds="f") is not None:
        found = distinct_rows(x, len(weights[0]), index, rows, moves)
    inputs, place = (x, None) if found is None else (found.rows, found.place)
    parts, residuals = MODES[mode].forward(inputs, h0, c0, *weights, walk=walk, place=place)
    flat = parts
    if type(parts) is tuple:  # else they lie one after the other already
        flat = backend.namespace(x).concatenate([p.reshape(-1) for p in parts])
    return flat.astype(arrays[0].dtype, copy=False), (*(found or _ALL_ROWS), *residuals)


_ALL_ROWS = (None, None, None)


def _apart(g: Any, *shapes: tuple[int, ...]) -> list[Any]:
    """The gradients of arrays of these shapes, from that of all of them, flat.

    Where it comes in parts, these are not joined: a part without a gradient is 0.
    """
    ends = itertools.accumulate(map(math.prod, shapes), initial=0)
    places = [slice(*both) for both in itertools.pairwise(ends)]
    if type(g) is Parts and (g.whole is not None or any(p[0] not in places for p in g.places)):
        g = assemble(g.shape, g.places, g.whole, *g.values)
    if type(g) is not Parts:
        return [wide(g[place]).reshape(shape) for place, shape in zip(places, shapes, strict=True)]
    xp, given = backend.namespace(g.values[0]), list(zip(g.places, g.values, strict=True))
    found = []
    for place, shape in zip(places, shapes, strict=True):
        values = [wide(value) for p, value in given if p[0] == place]
        total = sum(values[1:], values[0]) if values else xp.zeros(shape, wide_dtype(g.dtype))
        found.append(total.reshape(shape))
    return found


def _of_distinct(da: Any, w_ih: Any, distinct: Distinct, needs: Sequence[bool]) -> Any:
    """The gradients of the distinct rows, of their weight and of a bias."""
    _, place, rows = distinct
    kernels = load_for("recurrent", w_ih, kinds="f")
    if kernels is not None:
        return kernels.input_gradients(da, w_ih, rows, place, needs)
    sums: Any = collect(da, index=place, padding=None, rows=len(rows), scale=None)
    return linear_gradients(sums, rows, w_ih, needs)


def _backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    *arrays: Any,
    mode: str,
    sizes: tuple[int, ...],
    reverse: bool,
    batch_first: bool = False,
    index: Any = None,
    rows: int = 0,
    padding: int | None = None,
    moves: tuple[Any, ...] = (),
) -> list[Any]:
    given: list[Any] = [None if a is None else wide(a) for a in arrays]
    x, h0, c0, w_ih, w_hh, _b_ih, _b_hh, w_hr = given
    states = [a.shape for a in (h0, c0) if a is not None]
    dy, *last = _apart(g, (len(x), h0.shape[1]), *states)
    dh, dc = [*[d.copy() for d in last], None][:2]  # they are written
    walk = walk_of(sizes, not reverse, batch_first)
    distinct, residuals = residuals[:3], residuals[3:]
    found = MODES[mode].backward(dy, dh, dc, residuals, w_hh, w_hr, walk=walk)
    da, dr, old, dh, dc, dw_hr = found
    same = dr is da  # then one sum of columns serves both biases
    sums = needs[5] or (same and needs[6])
    past = len(needs) > len(arrays)
    numbers = distinct[0]
    if numbers is None:
        wanted = (needs[0] or past, needs[3], sums)
        dx_rows, dw_ih, db = linear_gradients(da, x, w_ih, wanted)
        dx = dx_rows
        if past:  # a recorded step whose rows are not those of many places any more
            numbers = numbers_of(index, moves)
    else:
        wanted = (past, needs[3], sums)
        dx_rows, dw_ih, db = _of_distinct(da, w_ih, Distinct(*distinct), wanted)
        dx = product(da, w_ih) if needs[0] else None
    db_hh = None
    if needs[6]:
        db_hh = db.copy() if same else column_sums(dr)
    dw_hh = product(dr.T, old) if needs[4] else None
    grads = [dx, dh, dc, dw_ih, dw_hh, db, db_hh, dw_hr]
    grads = [
        d.astype(a.dtype, copy=False) if need and d is not None else None
        for d, a, need in zip(grads, arrays, needs[:8], strict=True)
    ]
    if past:
        d_table = collect(dx_rows, index=numbers, padding=padding, rows=rows, scale=None)
        grads.append(d_table.astype(arrays[0].dtype, copy=False))
    return grads


class _Recurrent(Fused):
    """One direction of one layer; the gradient of rows of a table goes to the table itself."""

    takes_parts = True
    passes_by = True

    def needs(self, node: Node) -> list[bool]:
        """One more, in place of the first one, for the table."""
        needs = super().needs(node)
        known = node.saved[len(self.saves)] is not None
        if known and needs[0] and past_lookup(node):
            return [False, *needs[1:], True]
        return needs

    def behind(self, node: Node) -> Any:
        """Where the gradient of the table goes."""
        return table_of(node)


recurrent_op = _Recurrent(
    _recurrent, _forward, _backward, supports=lambda x, *arrays, **options: x.dtype.kind != "i"
)
"""`recurrent(x_NI, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, *, mode, sizes, reverse, batch_first)`,
flat. For rows of a table there are the options that `distinct.options_of` gives."""

__all__ = ["recurrent_op"]
