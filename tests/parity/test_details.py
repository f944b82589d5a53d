"""Details in which PyTorch differs from NumPy, or from what one would guess."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

NAN = float("nan")


def _grid(m: Any) -> Any:
    return m.arange(12).reshape(3, 4)


def _written(m: Any) -> Any:
    x = _grid(m)
    x[[[0, 1], [1, 0]]] = 7
    return x


def _counter(m: Any) -> Any:
    net = m.nn.Sequential(m.nn.BatchNorm1d(2))
    state = dict(net.state_dict())
    del state["0.num_batches_tracked"]
    net.load_state_dict(state)
    return m.tensor(net.load_state_dict({}, strict=False).missing_keys == list(state))


def _inserted(m: Any) -> Any:
    items = m.nn.Sequential(m.nn.ReLU())
    return m.tensor(items.insert(0, m.nn.Identity()) is items and len(items) == 2)


DETAILS: dict[str, Callable[[Any], Any]] = {
    "list of lists": lambda m: _grid(m)[[[0, 1], [1, 0]]],
    "list of one list": lambda m: _grid(m)[[[0, 1]]],
    "list of numbers": lambda m: _grid(m)[[0, 2]],
    "list of tensors": lambda m: _grid(m)[[m.tensor([0, 1]), m.tensor([1, 0])]],
    "list with a slice": lambda m: _grid(m)[[slice(0, 2), 1]],
    "list with None": lambda m: _grid(m)[[None, 1]],
    "write at a list of lists": _written,
    "nonzero of a number": lambda m: m.tensor(1).nonzero(),
    "nonzero of 0": lambda m: m.tensor(0).nonzero(),
    "nonzero of a number as tuple": lambda m: m.tensor(3).nonzero(as_tuple=True)[0],
    "unique NaN": lambda m: m.unique(m.tensor([NAN, 1.0, NAN, 1.0]), return_counts=True)[1],
    "bincount float32": lambda m: m.bincount(m.tensor([1, 1]), weights=m.tensor([1.0, 2.0])),
    "bincount int64": lambda m: m.bincount(m.tensor([1, 1]), weights=m.tensor([1, 2])),
    "bincount float16": lambda m: m.bincount(m.tensor([1, 1]), m.tensor([1.0, 2.0]).half()),
    "index_fill from the end": lambda m: m.zeros(2, 3).index_fill(1, m.tensor([0, -1]), 3.0),
    "old batch norm": _counter,
    "insert gives the container": _inserted,
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence:UserWarning")
@pytest.mark.parametrize("call", DETAILS.values(), ids=DETAILS)
def test_details(call: Callable[[Any], Any]) -> None:
    got, expected = call(mt), call(torch)
    assert str(got.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
    assert got.tolist() == expected.tolist()
    assert tuple(got.shape) == tuple(expected.shape)
