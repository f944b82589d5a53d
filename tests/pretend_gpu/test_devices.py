"""Two devices: arrays stay on theirs, kernels refuse the other's memory."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import pretend_gpu as gpu

HOST = np.ones((2, 3), np.float32)
REFUSED = r"resides \(1\) is different from the current device \(0\)"


def _on(index: int) -> gpu.ndarray:
    with gpu.cuda.Device(index):
        return gpu.asarray(HOST)


def test_the_context_decides_where_arrays_go() -> None:
    x = _on(1)
    assert x.device == gpu.cuda.Device(1)
    assert (int(x.device), repr(x.device)) == (1, "<CUDA Device 1>")
    assert gpu.cuda.get_device_id() == 0
    with gpu.cuda.Device(1):
        assert (x + x).device.id == gpu.zeros(3).device.id == x.sum().device.id == 1
        with gpu.cuda.Device(0):
            assert gpu.zeros(1).device.id == 0
        assert gpu.cuda.Device().id == 1


KERNELS = {
    "operator": lambda x: x + x,
    "number": lambda x: x * 2,
    "mixed": lambda x: x + _on(0),
    "mixed the other way": lambda x: _on(0) + x,
    "in place": lambda x: x.__iadd__(1),
    "out": lambda x: gpu.add(_on(0), 1, out=x),
    "reduction": lambda x: x.sum(),
    "function": lambda x: gpu.exp(x),
    "concatenate": lambda x: gpu.concatenate([_on(0), x]),
    "matmul": lambda x: x @ x.T,
    "index array": lambda x: x[[0]],
    "assignment": lambda x: x.__setitem__(0, 1),
    "assigned value": lambda x: _on(0).__setitem__(0, x[0]),
    "fill": lambda x: x.fill(1),
    "astype": lambda x: x.astype("d"),
    "where": lambda x: gpu.where(x > 0, 1, 0),
}


@pytest.mark.parametrize("run", KERNELS.values(), ids=KERNELS)
def test_kernels_refuse_memory_of_another_device(run) -> None:
    x = _on(1)
    with pytest.raises(ValueError, match=REFUSED):
        run(x)


VIEWS = {
    "slice": lambda x: x[1:],
    "reshape": lambda x: x.reshape(-1),
    "T": lambda x: x.T,
    "squeeze": lambda x: gpu.squeeze(x[:1]),
}


@pytest.mark.parametrize("make", VIEWS.values(), ids=VIEWS)
def test_views_and_host_values_need_no_current_device(make) -> None:
    x = _on(1)
    assert make(x).device.id == 1
    assert x.get().shape == (2, 3)
    assert x[0, 0].item() == 1


MOVES = {
    "asarray": lambda x: gpu.asarray(x),
    "array": lambda x: gpu.array(x, dtype="d"),
    "copy": lambda x: x.copy(),
    "copyto": lambda x: gpu.copyto(gpu.zeros((2, 3), "f"), x),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_copies_go_to_the_current_device_and_are_counted(move) -> None:
    x = _on(1)
    with gpu.counters.watch() as seen:
        moved = move(x)
    assert seen.device_to_device == gpu.Tally(1, 24)
    assert seen.device_to_host.calls == seen.host_to_device.calls == 0
    assert moved is None or moved.device.id == 0


def test_copyto_between_devices_takes_no_mask() -> None:
    with pytest.raises(ValueError, match="where is not supported"):
        gpu.copyto(gpu.zeros((2, 3), "f"), _on(1), where=True)


def test_deepcopy_stays() -> None:
    assert copy.deepcopy(_on(1)).device.id == 1


def test_devices_that_do_not_exist_are_refused() -> None:
    with pytest.raises(gpu.cuda.CUDARuntimeError, match="invalid device ordinal"):
        gpu.cuda.Device(2).use()
    with pytest.raises(gpu.cuda.runtime.CUDARuntimeError):
        gpu.cuda.Device(7).synchronize()


def test_the_runtime_knows_the_devices() -> None:
    runtime = gpu.cuda.runtime
    assert runtime.getDeviceCount() == 2
    runtime.setDevice(1)
    assert runtime.getDevice() == 1
    runtime.setDevice(0)
    assert gpu.is_available()
    assert gpu.cuda.is_available()
    with gpu.cuda.Stream() as stream:
        assert stream.use() is stream
    assert len({gpu.cuda.Device(0), gpu.cuda.Device(0), gpu.cuda.Device(1)}) == 2
