"""Operands on different devices are refused with both places and both operands; nothing moves."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

import minitorch as mt
from minitorch import nn

F = nn.functional


def _x() -> mt.Tensor:
    return mt.ones(2, 3, device="cuda:0")


def _y() -> mt.Tensor:
    return mt.ones(2, 3)


def _index() -> mt.Tensor:
    return mt.zeros(2, 3, dtype=mt.int64)


BOTH = [r"f32\[2,3\] on cuda:0", r"f32\[2,3\] on cpu", "all operands must be on one device"]
MIXED = {
    **{
        name: (BOTH, lambda name=name: getattr(mt, name)(_x(), _y()))
        for name in (
            "add sub mul div pow maximum minimum atan2 fmod remainder eq lt ge isclose "
            "logical_and floor_divide logaddexp equal"
        ).split()
    },
    "the other way": (BOTH, lambda: _y() * _x()),
    "operator": (BOTH, lambda: _x() + _y()),
    "two GPUs": (
        [r"f32\[2,3\] on cuda:0", r"f32\[3\] on cuda:1"],
        lambda: _x() + mt.ones(3, device="cuda:1"),
    ),
    "dtypes": (
        [r"on cuda:0", r"on cpu"],
        lambda: _x().double() + mt.ones(2, 3, dtype=mt.int64),
    ),
    "in place": (BOTH, lambda: _x().add_(_y())),
    "in place the other way": (BOTH, lambda: _y().mul_(_x())),
    "where": ([r"bool\[2,3\] on cpu", "on cuda:0"], lambda: mt.where(_y() > 0, _x(), _x())),
    "where of values": (["on cuda:0", "on cpu"], lambda: mt.where(_x() > 0, _x(), _y())),
    "masked_fill": (["on cuda:0", "on cpu"], lambda: _x().masked_fill(_y() > 0, 0.0)),
    "lerp": (BOTH, lambda: mt.lerp(_x(), _y(), 0.5)),
    "matmul": (
        [r"f32\[2,3\] on cuda:0", r"f32\[3,2\] on cpu"],
        lambda: _x() @ _y().T,
    ),
    "mm": (["on cuda:0", "on cpu"], lambda: mt.mm(_x(), _y().T)),
    "mv": ([r"f32\[3\] on cpu"], lambda: mt.mv(_x(), mt.ones(3))),
    "dot": ([r"f32\[3\] on cuda:0", r"f32\[3\] on cpu"], lambda: mt.dot(_x()[0], mt.ones(3))),
    "outer": (["on cuda:0", "on cpu"], lambda: mt.outer(_x()[0], mt.ones(3))),
    "bmm": (["on cuda:0", "on cpu"], lambda: mt.bmm(_x()[None], _y().T[None])),
    "addmm": (["on cuda:0", "on cpu"], lambda: mt.addmm(mt.ones(2), _x(), _x().T)),
    "cat": (BOTH, lambda: mt.cat([_x(), _y()])),
    "stack": (["on cuda:0", "on cpu"], lambda: mt.stack([_x(), _y()])),
    "hstack": (BOTH, lambda: mt.hstack([_x(), _y()])),
    "gather": (
        [r"f32\[2,3\] on cuda:0", r"i64\[2,3\] on cpu"],
        lambda: mt.gather(_x(), 1, _index()),
    ),
    "scatter": (
        [r"f32\[2,3\] on cuda:0", r"i64\[2,3\] on cpu"],
        lambda: mt.scatter(_x(), 1, _index(), 1.0),
    ),
    "scatter_add": (["on cuda:0", "on cpu"], lambda: mt.scatter_add(_x(), 1, _index(), _x())),
    "scatter_add of values": (
        BOTH,
        lambda: mt.scatter_add(_x(), 1, _index().cuda(), _y()),
    ),
    "index_select": (
        [r"i64\[3\] on cpu"],
        lambda: mt.index_select(_x(), 0, mt.zeros(3, dtype=mt.int64)),
    ),
    "take_along_dim": (["on cuda:0", "on cpu"], lambda: mt.take_along_dim(_x(), _index(), 1)),
    "set a tensor": ([r"setitem", BOTH[0], r"f32\[3\] on cpu"], lambda: _set(_x(), mt.ones(3))),
    "gradient": (["on cuda:0", "on cpu"], lambda: _leaf().sum(0).backward(mt.ones(3))),
    "linear": (
        [r"f32\[2,3\] on cuda:0", r"f32\[4,3\] on cpu"],
        lambda: F.linear(_x(), mt.ones(4, 3)),
    ),
    "layer": ([r"f32\[2,3\] on cuda:0", r"f32\[4,3\] on cpu"], lambda: nn.Linear(3, 4)(_x())),
    "layer on the device": (
        [r"f32\[2,3\] on cpu", r"f32\[4,3\] on cuda:0"],
        lambda: nn.Linear(3, 4).cuda()(_y()),
    ),
    "convolution": (
        [r"f32\[1,1,4,4\] on cuda:0", r"f32\[2,1,3,3\] on cpu"],
        lambda: nn.Conv2d(1, 2, 3)(mt.ones(1, 1, 4, 4, device="cuda:0")),
    ),
    "embedding": (
        [r"f32\[5,2\] on cpu", "on cuda:0"],
        lambda: nn.Embedding(5, 2)(_index().cuda()),
    ),
    "layer norm": (["on cuda:0", r"f32\[3\] on cpu"], lambda: nn.LayerNorm(3)(_x())),
    "batch norm": (["on cuda:0", r"f32\[3\] on cpu"], lambda: nn.BatchNorm1d(3)(_x())),
    "batch norm in eval": (
        ["on cuda:0", r"f32\[3\] on cpu"],
        lambda: nn.BatchNorm1d(3).eval()(_x()),
    ),
    "prelu": (["on cuda:0", r"f32\[1\] on cpu"], lambda: nn.PReLU()(_x())),
    "cross_entropy": (
        [r"f32\[2,3\] on cuda:0", r"i64\[2\] on cpu"],
        lambda: F.cross_entropy(_x(), mt.zeros(2, dtype=mt.int64)),
    ),
    "nll_loss": (
        [r"f32\[2,3\] on cuda:0", r"i64\[2,1\] on cpu"],
        lambda: F.nll_loss(_x(), mt.zeros(2, dtype=mt.int64)),
    ),
    **{
        name: (BOTH, lambda name=name: getattr(F, name)(_x() * 0.5, _y() * 0.5))
        for name in (
            "mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy "
            "binary_cross_entropy_with_logits cosine_similarity"
        ).split()
    },
}


def _set(x: mt.Tensor, value: mt.Tensor) -> None:
    x[0] = value


def _leaf() -> mt.Tensor:
    return _x().requires_grad_()


@pytest.mark.parametrize(("parts", "run"), MIXED.values(), ids=MIXED)
def test_both_places_and_both_operands_are_named(
    parts: list[str], run, pretend_gpu: ModuleType
) -> None:
    with pytest.raises(mt.DeviceError) as caught:
        run()
    for part in parts:
        assert re.search(part, str(caught.value))


def test_the_message_says_what_to_do(pretend_gpu: ModuleType) -> None:
    with pytest.raises(mt.DeviceError) as caught:
        _x() + _y()
    assert str(caught.value) == (
        "add: all operands must be on one device. Got f32[2,3] on cuda:0, f32[2,3] on cpu. "
        "Move them with .to(device), or create them with device=..."
    )


# A host number or 0-d tensor joins any device, as in PyTorch; so does an index.
JOINING = {
    "number": lambda: _x() + 1,
    "numpy scalar": lambda: _x() * mt.tensor(2.0).item(),
    "0-d on the host": lambda: _x() + mt.tensor(1.0),
    "0-d on the host first": lambda: mt.tensor(2.0) - _x(),
    "0-d in where": lambda: mt.where(_x() > 0, _x(), mt.tensor(0.0)),
    "index on the host": lambda: _x()[mt.tensor([0, 1])],
    "mask on the host": lambda: _x()[mt.tensor([True, False])],
    "0-d assigned": lambda: _assigned(mt.tensor(4.0)),
    "value of another device": lambda: mt.zeros(2, 3, device="cuda:0").copy_(_y()),
}


def _assigned(value: mt.Tensor) -> mt.Tensor:
    x = _x()
    x[0] = value
    return x


@pytest.mark.parametrize("run", JOINING.values(), ids=JOINING)
@pytest.mark.usefixtures("pretend_gpu")
def test_numbers_and_indices_join_any_device(run) -> None:
    assert str(run().device) == "cuda:0"


def test_gradients_of_0d_tensors_on_the_host_come_home(pretend_gpu: ModuleType) -> None:
    scale = mt.tensor(2.0, requires_grad=True)
    (_x() * scale).sum().backward()
    assert scale.grad.device == mt.device("cpu")
    assert scale.grad.item() == 6.0
