"""Plain recurrent layers, tanh or ReLU, over a whole sequence on float32, as `recurrent.py` has it.

Each block of the batch is one thread's, which goes through all steps. What the bodies compute
stands in `ops/recurrent_steps.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import FAST, kernel
from .scalars import tanh_f32
from .sequences import give, multiply, panels_of, shares, take
from .vector import ROWS

_F = np.float32
_ITEMSIZE = 4


@kernel(fastmath=FAST)
def _forward(first, last, y, panels, h, old, steps, block, tanh):  # type: ignore[no-untyped-def]
    n = h.shape[1]
    step = _ITEMSIZE * n
    hidden = np.zeros((block + ROWS, n), _F)
    for start in range(first * block, min(last * block, len(h)), block):
        rows = min(block, len(h) - start)
        take(hidden, h, start, rows)
        for t in range(len(steps)):
            live, apart = min(rows, steps[t, 1] - start), steps[t, 2]
            if live <= 0:
                continue
            line = steps[t, 0] + start * apart
            place = y.ctypes.data + line * step
            multiply(hidden, panels, place, apart * step, place, apart * step, live, n)
            for r in range(live):
                at = line + r * apart
                out, now, before = y[at], hidden[r], old[at]
                if tanh:
                    for j in range(n):
                        out[j] = tanh_f32(out[j])
                else:
                    for j in range(n):
                        out[j] = _F(0) if out[j] <= _F(0) else out[j]
                for j in range(n):
                    before[j] = now[j]
                    now[j] = out[j]
        give(hidden, h, start, rows)


@kernel(fastmath=FAST)
def _backward(first, last, da, panels, zeros, dh, dy, y, steps, block, tanh):  # type: ignore[no-untyped-def]
    n = dh.shape[1]
    slopes, flow = np.zeros((block + ROWS, n), _F), np.empty((block, n), _F)
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
                back, given, out, d, into = flow[r], dy[at], y[at], slopes[r], da[at]
                if tanh:
                    for j in range(n):
                        d[j] = (back[j] + given[j]) * (_F(1) - out[j] * out[j])
                else:
                    for j in range(n):
                        g = back[j] + given[j]
                        d[j] = g * (_F(1) if out[j] > _F(0) else _F(0))
                for j in range(n):
                    into[j] = d[j]
            to, step = flow.ctypes.data, _ITEMSIZE * n
            multiply(slopes, panels, zeros.ctypes.data, 0, to, step, live, n)
        give(flow, dh, start, rows)


def forward(y: Any, h0: Any, w_hh: Any, walk: Any, tanh: bool) -> tuple[Any, Any, Any]:
    """The states of all rows in place of the input's part `y`, the last and the old states."""
    h, old = h0.copy(), np.empty_like(y)
    workers, blocks, block = shares(len(h))
    _forward.share(workers, blocks, y, panels_of(w_hh.T), h, old, walk.table, block, tanh)
    return y, h, old


def backward(dy: Any, dh: Any, y: Any, w_hh: Any, walk: Any, tanh: bool) -> Any:
    """The gradient before the activations; `dh` becomes the gradient of h0."""
    da, dy = np.empty_like(y), np.ascontiguousarray(dy)
    workers, blocks, block = shares(len(dh))
    panels, zeros = panels_of(w_hh), np.zeros(dh.shape[1], _F)
    given = (da, panels, zeros, dh, dy, y, walk.table, block, tanh)
    _backward.share(workers, blocks, *given)
    return da
