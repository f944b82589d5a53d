"""Tensors go to the device and come back: values, dtypes, places, gradients, and what it costs."""

from __future__ import annotations

import copy
import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

import minitorch as mt
from minitorch import backend

DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), (2, 3), (0, 3)])
def test_round_trips_keep_values_and_dtypes(
    name: str, shape: tuple[int, ...], pretend_gpu: ModuleType
) -> None:
    there = mt.ones(shape, dtype=getattr(mt, name)).to("cuda")
    assert str(there.device) == "cuda:0"
    assert there.is_cuda
    assert isinstance(there._array, pretend_gpu.ndarray)
    back = there.cpu()
    assert type(back._array) is np.ndarray
    assert back.dtype is there.dtype is getattr(mt, name)
    np.testing.assert_array_equal(back.numpy(), np.ones(shape, name))


def test_bfloat16_needs_a_cupy_that_has_it(pretend_gpu: ModuleType) -> None:
    x = mt.ones(2, dtype=mt.bfloat16)
    with pytest.raises(ValueError, match="Unsupported dtype bfloat16"):
        x.to("cuda")
    with pretend_gpu.bfloat16_accepted():
        y = (x.to("cuda") + 1).cpu()
    assert y.dtype is mt.bfloat16
    assert y.tolist() == [2.0, 2.0]


MOVES = {
    "to a name": lambda x: x.to("cuda:1"),
    "to a device": lambda x: x.to(mt.device("cuda", 1)),
    "to a keyword": lambda x: x.to(device="cuda:1"),
    "to a number": lambda x: x.to(1),
    "to a device and dtype": lambda x: x.to("cuda:1", mt.float64).to(mt.float32),
    "to follow a tensor": lambda x: x.to(mt.ones(1).to("cuda:1")),
    "cuda": lambda x: x.cuda(1),
    "type_as": lambda x: x.type_as(mt.ones(1).to("cuda:1")),
    "by way of another": lambda x: x.cuda().to("cuda:1"),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_every_way_to_move(move, pretend_gpu: ModuleType) -> None:
    with pretend_gpu.cuda.Device(1):
        moved = move(mt.tensor(X))
    assert moved.device == mt.device("cuda:1")
    assert moved.get_device() == 1
    assert moved.dtype is mt.float32
    np.testing.assert_array_equal(moved.cpu().numpy(), X)


def test_the_device_without_a_number_is_the_current_one(pretend_gpu: ModuleType) -> None:
    with pretend_gpu.cuda.Device(1):
        assert str(mt.ones(1).to("cuda").device) == "cuda:1"
        assert str(mt.ones(1).to("cuda:0").to("cuda").device) == "cuda:0"
    assert str(mt.ones(1).cuda().device) == "cuda:0"


@pytest.mark.usefixtures("pretend_gpu")
def test_what_is_there_already_is_not_moved() -> None:
    x = mt.tensor(X).cuda()
    assert x.to("cuda") is x
    assert x.to("cuda:0") is x
    assert x.cuda() is x
    assert x.to(x) is x
    assert x.to("cuda", copy=True) is not x


# name: (host to device, device to host, between devices), what to do with a tensor on cuda:0
COSTS = {
    "to the device": ((1, 0, 0), lambda x: mt.tensor(X).cuda()),
    "to the host": ((0, 1, 0), lambda x: x.cpu()),
    "between devices": ((0, 0, 1), lambda x: x.to("cuda:1")),
    "nowhere": ((0, 0, 0), lambda x: x.to("cuda:0")),
    "another dtype": ((0, 0, 0), lambda x: x.double()),
    "item": ((0, 1, 0), lambda x: x[0, 0].item()),
    "tolist": ((0, 1, 0), lambda x: x.tolist()),
    "repr": ((0, 1, 0), lambda x: repr(x)),
    "format": ((0, 1, 0), lambda x: f"{x[0, 0]:.1f}"),
    "bool": ((0, 1, 0), lambda x: bool(x[0, 0] == 0)),
    "numpy": ((0, 1, 0), lambda x: x.numpy(force=True)),
    "deepcopy": ((0, 0, 0), lambda x: copy.deepcopy(x)),
    "detach": ((0, 0, 0), lambda x: x.detach()),
    "clone": ((0, 0, 0), lambda x: x.clone()),
    "shape": ((0, 0, 0), lambda x: (x.shape, x.dtype, x.device, x.stride(), len(x), x.nbytes)),
}


@pytest.mark.parametrize(("calls", "run"), COSTS.values(), ids=COSTS)
def test_costs(calls: tuple[int, ...], run, pretend_gpu: ModuleType) -> None:
    x = mt.tensor(X).cuda()
    with pretend_gpu.counters.watch() as seen:
        run(x)
    kinds = ("host_to_device", "device_to_host", "device_to_device")
    assert tuple(seen.total(kind).calls for kind in kinds) == calls, seen.report()


def test_gradients_come_back_to_the_host(pretend_gpu: ModuleType) -> None:
    x = mt.tensor(X, requires_grad=True)
    y = (x * 2).to("cuda:0")
    assert y.requires_grad
    assert not y.is_leaf
    (y * y).sum().backward()
    assert x.grad.device == mt.device("cpu")
    np.testing.assert_allclose(x.grad.numpy(), 8 * X)


def test_gradients_cross_devices_both_ways(pretend_gpu: ModuleType) -> None:
    x = mt.tensor(X, requires_grad=True, device="cuda:0")
    (x.cpu() * 3).sum().backward()
    assert str(x.grad.device) == "cuda:0"
    np.testing.assert_allclose(x.grad.cpu().numpy(), np.full_like(X, 3))


@pytest.mark.usefixtures("pretend_gpu")
def test_second_gradients_cross_devices() -> None:
    x = mt.tensor(X, requires_grad=True)
    (g,) = mt.autograd.grad((x.cuda() ** 3).sum(), [x], create_graph=True)
    (h,) = mt.autograd.grad(g.sum(), [x])
    np.testing.assert_allclose(h.numpy(), 6 * X)


@pytest.mark.usefixtures("pretend_gpu")
def test_a_leaf_moved_before_it_requires_grad_is_a_leaf() -> None:
    x = mt.tensor(X).cuda().requires_grad_()
    x.sum().backward()
    assert x.is_leaf
    assert str(x.grad.device) == "cuda:0"


@pytest.mark.usefixtures("pretend_gpu")
def test_copies_and_pickles_stay_on_their_device() -> None:
    x = mt.tensor(X).to("cuda:1")
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert twin.device == x.device
        np.testing.assert_array_equal(twin.cpu().numpy(), X)


@pytest.mark.usefixtures("pretend_gpu")
def test_copy_between_devices_writes_in_place() -> None:
    x, host = mt.zeros(2, 3, device="cuda"), mt.tensor(X)
    x.copy_(host)
    np.testing.assert_array_equal(x.cpu().numpy(), X)
    host.copy_(x * 2)
    np.testing.assert_array_equal(host.numpy(), 2 * X)


@pytest.mark.usefixtures("pretend_gpu")
def test_dlpack_shares_device_memory(pretend_gpu: ModuleType) -> None:
    x = mt.tensor(X).cuda()
    assert x.__dlpack_device__() == (2, 0)
    twin = mt.from_dlpack(x)
    x.fill_(1.0)
    assert twin.cpu().tolist() == [[1.0] * 3] * 2
    assert x.data_ptr() == twin.data_ptr()


def test_repr_names_the_device(pretend_gpu: ModuleType) -> None:
    assert "device='cuda:0'" in repr(mt.tensor(X).cuda())
    assert "[0., 1., 2.]" in repr(mt.tensor(X).cuda())


WRONG = {
    "numpy": (
        r"numpy: the tensor must be on the CPU. Got f32\[2,3\] on cuda:0. Use .cpu\(\).numpy\(\)",
        lambda x: x.numpy(),
    ),
    "numpy's function": (r"numpy: the tensor must be on the CPU", lambda x: np.asarray(x)),
    "no such number": (
        r"'cuda:7' does not exist. This machine has 2 GPU\(s\). Use 'cuda:0' to 'cuda:1'",
        lambda x: x.to("cuda:7"),
    ),
    "no such number from the host": ("'cuda:2' does not exist", lambda x: x.cpu().to("cuda:2")),
    "unknown kind": ("expected 'cpu', 'cuda' or 'cuda:N'. Got 'tpu'", lambda x: x.to("tpu")),
    "bad number": ("expected 'cpu', 'cuda' or 'cuda:N'", lambda x: x.to("cuda:x")),
}


@pytest.mark.parametrize(("message", "run"), WRONG.values(), ids=WRONG)
@pytest.mark.usefixtures("pretend_gpu")
def test_wrong_moves_say_what_to_do(message: str, run) -> None:
    with pytest.raises(mt.DeviceError, match=message):
        run(mt.tensor(X).cuda())


def test_without_cupy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    message = r"'cuda' needs CuPy.*Install minitorch-trainer\[cuda12\] or \[cuda13\]"
    with pytest.raises(mt.DeviceError, match=message):
        mt.ones(1).to("cuda")
    with pytest.raises(mt.DeviceError, match=message):
        mt.ones(1, device="cuda")


def test_without_a_driver_the_driver_is_named(
    pretend_gpu: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise pretend_gpu.cuda.CUDARuntimeError("cudaErrorInsufficientDriver")

    monkeypatch.setattr(pretend_gpu.cuda.runtime, "getDeviceCount", fail)
    with pytest.raises(mt.DeviceError, match="CuPy is installed but finds no usable GPU"):
        backend.cupy_backend.make()


def test_the_record_of_the_backend(pretend_gpu: ModuleType) -> None:
    record = backend.get("cuda")
    x = mt.tensor(X).cuda()._array
    assert backend.of(x) is record
    assert backend.is_array(x)
    assert backend.namespace(x) is pretend_gpu
    assert (record.device_count(), record.current_index(), record.index_of(x)) == (2, 0, 0)
    with pretend_gpu.counters.watch() as seen:
        record.synchronize()
    assert seen.synchronisations.calls == 1
