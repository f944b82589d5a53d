"""Lazy layers get their sizes at the first call, or from a state that is loaded."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn

LAYERS: list[tuple[str, tuple[int, ...], str]] = [
    ("LazyLinear(4)", (2, 3), "Linear(3, 4)"),
    ("LazyLinear(4, bias=False)", (2, 5, 3), "Linear(3, 4, bias=False)"),
    ("LazyConv1d(4, 2)", (2, 3, 5), "Conv1d(3, 4, 2)"),
    ("LazyConv2d(4, 2, groups=2)", (2, 6, 5, 5), "Conv2d(6, 4, 2, groups=2)"),
    ("LazyConv2d(4, 2, padding=1)", (3, 5, 5), "Conv2d(3, 4, 2, padding=1)"),
    ("LazyConv3d(2, 1)", (1, 3, 2, 2, 2), "Conv3d(3, 2, 1)"),
    ("LazyConvTranspose1d(4, 2)", (3, 5), "ConvTranspose1d(3, 4, 2)"),
    ("LazyConvTranspose2d(4, 2, 2)", (1, 3, 5, 5), "ConvTranspose2d(3, 4, 2, 2)"),
    ("LazyConvTranspose3d(2, 1)", (1, 3, 2, 2, 2), "ConvTranspose3d(3, 2, 1)"),
    ("LazyBatchNorm1d()", (4, 3), "BatchNorm1d(3)"),
    ("LazyBatchNorm2d(momentum=0.2)", (4, 3, 2, 2), "BatchNorm2d(3, momentum=0.2)"),
    ("LazyBatchNorm3d(affine=False)", (4, 3, 2, 2, 2), "BatchNorm3d(3, affine=False)"),
    (
        "LazyInstanceNorm1d()",
        (3, 5),
        "InstanceNorm1d(3, affine=True, track_running_stats=True)",
    ),
    (
        "LazyInstanceNorm2d()",
        (2, 3, 5, 2),
        "InstanceNorm2d(3, affine=True, track_running_stats=True)",
    ),
    (
        "LazyInstanceNorm3d(affine=False, track_running_stats=False)",
        (2, 3, 5, 2, 2),
        "InstanceNorm3d(3)",
    ),
]
IDS = [lazy for lazy, *_ in LAYERS]


def _made(text: str) -> Any:
    name = text.split("(")[0]
    return eval(text, {name: getattr(nn, name)})


@pytest.mark.parametrize(("lazy", "shape", "ordinary"), LAYERS, ids=IDS)
def test_the_first_call_makes_an_ordinary_layer(lazy: str, shape: Any, ordinary: str) -> None:
    layer, twin = _made(lazy), _made(ordinary)
    assert layer.has_uninitialized_params() == bool(twin.state_dict())
    y = layer(mt.ones(*shape))
    assert type(layer) is type(twin)
    assert repr(layer) == repr(twin)
    assert {k: v.shape for k, v in layer.state_dict().items()} == {
        k: v.shape for k, v in twin.state_dict().items()
    }
    assert type(layer.state_dict()) is type(twin.state_dict())
    if y.requires_grad:
        (y * y).sum().backward()
        assert all(p.grad is not None for p in layer.parameters())


@pytest.mark.parametrize(("lazy", "shape", "ordinary"), LAYERS, ids=IDS)
def test_a_state_gives_the_shapes_too(lazy: str, shape: Any, ordinary: str) -> None:
    layer, twin = _made(lazy), _made(ordinary)
    x = mt.randn(*shape)
    layer.load_state_dict(twin.state_dict())
    assert mt.equal(layer(x), twin(x))
    assert repr(layer) == repr(twin)


def test_state_without_shapes() -> None:
    layer, other = nn.LazyLinear(3), nn.LazyLinear(3)
    state = layer.state_dict()
    assert state["weight"] is layer.weight
    other.load_state_dict(state)
    assert other.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="load its state"):
        nn.Linear(4, 3).load_state_dict(state)


def test_an_optimizer_may_come_before_the_first_call() -> None:
    net = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(1))
    optimizer = mt.optim.SGD(net.parameters(), lr=0.1)
    net(mt.ones(2, 4)).sum().backward()
    before = net[0].weight.detach().clone(), net[2].bias.detach().clone()
    optimizer.step()
    assert not mt.equal(net[2].bias, before[1])
    assert net[0].weight.shape == before[0].shape


def test_moving_and_copying_before_the_first_call() -> None:
    layer = nn.LazyBatchNorm1d().double()
    assert layer.weight.dtype is mt.float64
    assert layer.running_mean.dtype is mt.float64
    assert str(layer.weight.device) == "cpu"
    assert repr(layer.weight) == "<UninitializedParameter>"
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert twin(mt.ones(2, 3).double()).dtype is mt.float64
    assert layer.has_uninitialized_params()
    layer.requires_grad_(False)
    layer(mt.ones(2, 3).double())
    assert not layer.weight.requires_grad


def test_materialize() -> None:
    parameter, buffer = nn.UninitializedParameter(), nn.UninitializedBuffer(dtype=mt.int64)
    parameter.materialize((2, 3), dtype=mt.float64)
    buffer.materialize((4,))
    assert type(parameter) is nn.Parameter
    assert parameter.shape == (2, 3)
    assert parameter.dtype is mt.float64
    assert parameter.requires_grad
    assert type(buffer) is mt.Tensor
    assert buffer.dtype is mt.int64


def test_reset_waits_for_the_shapes() -> None:
    layer = nn.LazyConv2d(3, 2)
    layer.reset_parameters()
    assert layer.has_uninitialized_params()
