"""Tensors are made on the device that is asked for, with the numbers of the CPU."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import minitorch as mt

# name: (transfers from the host, how to make it)
CREATIONS = {
    "zeros": (0, lambda **o: mt.zeros(2, 3, **o)),
    "ones": (0, lambda **o: mt.ones(2, 3, **o)),
    "full": (0, lambda **o: mt.full((2, 3), 2.5, **o)),
    "full of a whole number": (0, lambda **o: mt.full((2, 3), 7, **o)),
    "arange": (0, lambda **o: mt.arange(5, **o)),
    "arange in steps": (0, lambda **o: mt.arange(1.0, 2.0, 0.25, **o)),
    "linspace": (0, lambda **o: mt.linspace(0, 1, 5, **o)),
    "logspace": (0, lambda **o: mt.logspace(0, 2, 3, **o)),
    "eye": (0, lambda **o: mt.eye(3, **o)),
    "tensor": (1, lambda **o: mt.tensor([[1.0, 2.0], [3.0, 4.0]], **o)),
    "tensor of an array": (1, lambda **o: mt.tensor(np.arange(3), **o)),
    "as_tensor": (1, lambda **o: mt.as_tensor([1, 2], **o)),
    "rand": (1, lambda **o: mt.rand(2, 3, **o)),
    "randn": (1, lambda **o: mt.randn(2, 3, **o)),
    "randint": (1, lambda **o: mt.randint(0, 10, (4,), **o)),
    "randperm": (1, lambda **o: mt.randperm(5, **o)),
    "zeros in float16": (0, lambda **o: mt.zeros(2, dtype=mt.float16, **o)),
    "ones in int64": (0, lambda **o: mt.ones(2, dtype=mt.int64, **o)),
}


def _seeded(make, **options) -> mt.Tensor:
    mt.manual_seed(3)
    return make(**options)


@pytest.mark.parametrize("where", ["cuda", "cuda:0", "cuda:1"])
@pytest.mark.parametrize(("uploads", "make"), CREATIONS.values(), ids=CREATIONS)
def test_made_on_the_device(uploads: int, make, where: str, pretend_gpu: ModuleType) -> None:
    want = _seeded(make)
    with pretend_gpu.cuda.Device(int(where[-1]) if ":" in where else 0):
        with pretend_gpu.counters.watch() as seen:
            got = _seeded(make, device=where)
    assert str(got.device) == (where if ":" in where else "cuda:0")
    assert got.dtype is want.dtype
    np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=1e-6)
    assert seen.host_to_device.calls == uploads, seen.report("host_to_device")
    assert seen.device_to_host.calls == 0, seen.report("device_to_host")


@pytest.mark.parametrize("make", [lambda **o: mt.zeros(2, **o), lambda **o: mt.eye(2, **o)])
@pytest.mark.usefixtures("pretend_gpu")
def test_made_on_a_device_that_is_not_current(make) -> None:
    x = make(device="cuda:1", requires_grad=True)
    assert str(x.device) == "cuda:1"
    assert x.is_leaf
    assert x.requires_grad


LIKE = {
    "zeros_like": mt.zeros_like,
    "ones_like": mt.ones_like,
    "empty_like": mt.empty_like,
    "full_like": lambda x: mt.full_like(x, 2.0),
    "rand_like": mt.rand_like,
    "randn_like": mt.randn_like,
    "randint_like": lambda x: mt.randint_like(x, 5),
    "new_zeros": lambda x: x.new_zeros(3),
    "new_ones": lambda x: x.new_ones(3),
    "new_full": lambda x: x.new_full((2,), 1.0),
    "new_empty": lambda x: x.new_empty(2),
    "new_tensor": lambda x: x.new_tensor([1, 2]),
    "bernoulli": lambda x: mt.bernoulli(x),
    "multinomial": lambda x: mt.multinomial(x, 1),
}


@pytest.mark.parametrize("make", LIKE.values(), ids=LIKE)
@pytest.mark.usefixtures("pretend_gpu")
def test_made_like_another_tensor(make) -> None:
    assert make(mt.full((2, 3), 0.5, device="cuda")).is_cuda


def test_random_numbers_in_place_are_the_cpus(pretend_gpu: ModuleType) -> None:
    for name in ("normal_", "uniform_", "exponential_", "bernoulli_", "random_"):
        made = []
        for where in ("cpu", "cuda"):
            mt.manual_seed(1)
            made.append(getattr(mt.zeros(4, device=where), name)().cpu().numpy())
        np.testing.assert_array_equal(*made)


def test_a_device_array_is_taken_as_it_is(pretend_gpu: ModuleType) -> None:
    array = pretend_gpu.arange(3)
    with pretend_gpu.counters.watch() as seen:
        x = mt.tensor(array)
    assert x.is_cuda
    array.fill(0)
    assert x.tolist() == [0, 1, 2]
    assert seen.host_to_device.calls == seen.device_to_host.calls == 0


def test_default_values_are_made_on_the_cpu(pretend_gpu: ModuleType) -> None:
    with pretend_gpu.counters.watch() as seen:
        mt.zeros(2) + mt.arange(2)
    assert seen.allocations.calls == 0


MADE = {
    "tensor": lambda: mt.tensor([1.0]),
    "zeros": lambda: mt.zeros(2),
    "arange": lambda: mt.arange(3),
    "rand": lambda: mt.rand(2),
    "randperm": lambda: mt.randperm(3),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.usefixtures("pretend_gpu")
def test_new_tensors_go_to_the_default_device(make) -> None:
    with mt.device("cuda"):
        assert make().is_cuda
        assert not mt.zeros(2, device="cpu").is_cuda
        assert not mt.from_numpy(np.ones(2)).is_cuda
    assert not make().is_cuda
    mt.set_default_device("cuda")
    try:
        assert make().is_cuda
    finally:
        mt.set_default_device(None)
