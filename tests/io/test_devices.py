import numpy as np
import pytest

from minitorch import device, io
from minitorch.errors import CheckpointError
from minitorch.ops.primitive import wrap

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def on(place, values=VALUES):
    return wrap(values).to(place)


@pytest.mark.parametrize("place", ["cuda:0", "cuda:1"])
def test_tensors_of_a_device_are_saved_and_come_back_to_the_cpu(place, pretend_gpu, tmp_path):
    tensor = on(place)
    io.save_tree(tmp_path / "t", {"a": tensor, "b": [tensor, tensor.T]})
    assert pretend_gpu.counters.device_to_host.calls == 2
    loaded = io.load_tree(tmp_path / "t")
    assert loaded["a"] is loaded["b"][0]
    assert loaded["a"].device == device("cpu")
    assert loaded["a"].tolist() == VALUES.tolist()
    assert loaded["b"][1].tolist() == VALUES.T.tolist()


@pytest.mark.parametrize("place", ["cuda:0", "cuda:1", device("cuda", 1)])
def test_map_location_moves_tensors_once_and_leaves_arrays(place, pretend_gpu, tmp_path):
    tensor = wrap(VALUES)
    io.save_tree(tmp_path / "t", [tensor, tensor, VALUES + 1])
    pretend_gpu.counters.reset()
    a, b, array = io.load_tree(tmp_path / "t", map_location=place)
    assert a is b
    assert a.device == device(place)
    assert a.cpu().tolist() == VALUES.tolist()
    assert type(array) is np.ndarray
    assert pretend_gpu.counters.host_to_device.calls == 1


@pytest.mark.parametrize("place", ["cuda:0", "cuda:1"])
def test_a_snapshot_stays_on_its_device_without_a_transfer(place, pretend_gpu):
    tensor = on(place)
    pretend_gpu.counters.reset()
    taken = io.snapshot({"a": tensor})["a"]
    assert pretend_gpu.counters.device_to_host.calls == 0
    assert pretend_gpu.counters.host_to_device.calls == 0
    with pretend_gpu.cuda.Device(tensor.device.index):
        tensor.zero_()
    assert taken.device == device(place)
    assert taken.cpu().tolist() == VALUES.tolist()


def test_a_bare_device_array_is_refused(pretend_gpu):
    with pytest.raises(CheckpointError, match=r"ndarray at 'a'. Convert it to one of these"):
        io.snapshot({"a": on("cuda:0")._array})
