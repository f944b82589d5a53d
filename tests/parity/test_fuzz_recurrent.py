"""2 000 random calls of recurrent layers, cells and packed sequences against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

from fuzz import Call, Rng, run  # noqa: E402

import minitorch as mt  # noqa: E402


def _size(rng: Rng, high: int = 4, wrong: float = 0.02) -> int:
    """From 1 to `high`; rarely 0."""
    return 0 if rng.random() < wrong else int(rng.integers(1, high + 1))


def _coin(rng: Rng, p: float = 0.5) -> bool:
    return bool(rng.random() < p)


def _filled(layer: Any, values: np.ndarray, m: Any) -> Any:
    """`layer` in float64 with parameters from `values`, which start anew for each."""
    layer = layer.double()
    for k, p in enumerate(layer.parameters()):
        part = np.resize(np.roll(values, k * 7), tuple(p.shape))
        p.data.copy_(m.tensor(part))
    return layer


def _with_weights(m: Any, layer: Any, outs: Any) -> Any:
    """The results, and the gradients of a number made of them with respect to the parameters."""
    parts: list[Any] = []
    for out in outs:
        parts += list(out) if isinstance(out, tuple) else [out]
    total = sum(((p * p).sum() for p in parts), start=0.0)
    found = m.autograd.grad(total, list(layer.parameters()), retain_graph=True)
    return [*parts, *found]


def _layer(rng: Rng) -> Call:
    name = ("RNN", "LSTM", "GRU")[int(rng.integers(3))]
    hidden = _size(rng)
    options: dict[str, Any] = {
        "input_size": _size(rng),
        "hidden_size": hidden,
        "num_layers": _size(rng, 3),
        "bias": _coin(rng),
        "batch_first": _coin(rng),
        "bidirectional": _coin(rng),
    }
    if name == "RNN" and _coin(rng):
        options["nonlinearity"] = "relu"
    proj = 0
    if hidden > 1 and _coin(rng, 0.3 if name == "LSTM" else 0.02):
        proj = options["proj_size"] = int(rng.integers(1, hidden + (rng.random() < 0.1)))
    steps, batch = _size(rng, 5), _size(rng)
    batched = _coin(rng, 0.7)
    features = options["input_size"] + (rng.random() < 0.03)
    shape = (batch, steps, features) if options["batch_first"] else (steps, batch, features)
    shape = shape if batched else (steps, features)
    arrays = [rng.normal(size=shape)]
    count = options["num_layers"] * (1 + options["bidirectional"])
    if _coin(rng):
        for width in (proj or hidden, hidden)[: 2 if name == "LSTM" else 1]:
            first = count + (rng.random() < 0.05)
            wanted = (first, batch, width) if batched else (first, width)
            arrays.append(rng.normal(size=wanted))
    values = rng.uniform(-0.7, 0.7, 211)

    def call(m: Any, x: Any, *state: Any) -> Any:
        layer = _filled(getattr(m.nn, name)(**options), values, m)
        hx = None if not state else tuple(state) if name == "LSTM" else state[0]
        outs = layer(x, hx)
        return _with_weights(m, layer, outs)

    return Call(f"{name}({options})", call, arrays)


def _packed(rng: Rng) -> Call:
    name = ("RNN", "LSTM", "GRU")[int(rng.integers(3))]
    steps, batch = _size(rng, 5, 0), _size(rng, 4, 0)
    lengths = rng.integers(1, steps + 1, batch)
    sort, first, both = _coin(rng), _coin(rng), _coin(rng)
    if _coin(rng):
        lengths = -np.sort(-lengths)
    if sort and _coin(rng, 0.03):
        lengths = lengths[:-1]
    shape = (batch, steps, 2) if first else (steps, batch, 2)
    arrays = [rng.normal(size=shape)]
    if _coin(rng):
        arrays.append(rng.normal(size=(1 + both, batch, 3)))
    values, total = rng.uniform(-0.7, 0.7, 211), None if _coin(rng) else int(rng.integers(3, 7))

    def call(m: Any, x: Any, *state: Any) -> Any:
        rnn = m.nn.utils.rnn
        layer = _filled(getattr(m.nn, name)(2, 3, bidirectional=both), values, m)
        packed = rnn.pack_padded_sequence(x, lengths.tolist(), first, sort)
        hx = None if not state else (state[0], state[0] * 2) if name == "LSTM" else state[0]
        y, h = layer(packed, hx)
        padded, found = rnn.pad_packed_sequence(y, first, 0.5, total)
        return [found, *_with_weights(m, layer, (padded, h))]

    return Call(f"{name} packed {lengths} sort={sort} first={first} total={total}", call, arrays)


def _cell(rng: Rng) -> Call:
    name = ("RNNCell", "LSTMCell", "GRUCell")[int(rng.integers(3))]
    features, hidden, batch = _size(rng, 4, 0), _size(rng, 4, 0), _size(rng, 4)
    options: dict[str, Any] = {"bias": _coin(rng)}
    if name == "RNNCell" and _coin(rng):
        options["nonlinearity"] = "relu"
    batched = _coin(rng, 0.7)
    lead = (batch,) if batched else ()
    arrays = [rng.normal(size=(*lead, features + (rng.random() < 0.03)))]
    if _coin(rng):
        width = hidden + (rng.random() < 0.05)
        arrays += [rng.normal(size=(*lead, width)) for _ in range(1 + (name == "LSTMCell"))]
    values = rng.uniform(-0.7, 0.7, 211)

    def call(m: Any, x: Any, *state: Any) -> Any:
        layer = _filled(getattr(m.nn, name)(features, hidden, **options), values, m)
        hx = None if not state else tuple(state) if name == "LSTMCell" else state[0]
        outs = layer(x, hx)
        return _with_weights(m, layer, outs if isinstance(outs, tuple) else (outs,))

    return Call(f"{name}({features}, {hidden}, {options})", call, arrays)


def _sequences(rng: Rng) -> Call:
    tail = tuple(int(n) for n in rng.integers(1, 3, int(rng.integers(0, 3))))
    lengths = rng.integers(1, 5, _size(rng, 4, 0))
    arrays = [rng.normal(size=(int(n), *tail)) for n in lengths]
    if len(arrays) > 1 and _coin(rng, 0.05):
        arrays[1] = rng.normal(size=(2, *tail, 3))
    first, sort = _coin(rng), _coin(rng)
    side = "left" if _coin(rng) else "right"

    def call(m: Any, *xs: Any) -> Any:
        rnn = m.nn.utils.rnn
        padded = rnn.pad_sequence(xs, first, 0.25, side)
        back = rnn.unpad_sequence(padded * 1, m.tensor(lengths), first)
        packed = rnn.pack_sequence(xs, sort)
        parts = [p for p in packed if p is not None]
        return [padded, *back, *parts, *rnn.unpack_sequence(packed)]

    return Call(f"sequences {lengths} {first} {sort} {side}", call, arrays)


MAKERS: list[Callable[[Rng], Call]] = [_layer, _packed, _cell, _sequences]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__[1:])
def test_random_calls(make: Callable[[Rng], Call]) -> None:
    run(mt, torch, make, 500, seed=2)
