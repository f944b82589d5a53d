"""`minitorch.cuda`: with and without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

import minitorch as mt


def test_without_a_gpu() -> None:
    assert not mt.cuda.is_available()
    assert mt.cuda.device_count() == 0
    with pytest.raises(mt.DeviceError, match="needs CuPy"):
        mt.cuda.synchronize()


def test_with_one(pretend_gpu: Any) -> None:
    assert mt.cuda.is_available()
    assert mt.cuda.device_count() == 2
    assert mt.cuda.current_device() == 0
    mt.cuda.synchronize()
    mt.cuda.manual_seed_all(3)
    assert mt.initial_seed() == 3


def test_properties_memory_and_streams(pretend_gpu: Any) -> None:
    cuda = mt.cuda
    cuda.set_device("cuda:1")
    assert cuda.current_device() == 1
    with cuda.device(0):
        assert cuda.current_device() == 0
    assert cuda.current_device() == 1
    assert cuda.get_device_name(0) == "Pretend GPU"
    assert cuda.get_device_capability() == (9, 0)
    assert cuda.get_device_properties().total_memory == cuda.mem_get_info()[1]
    assert cuda.is_bf16_supported()
    cuda.empty_cache()
    assert cuda.max_memory_allocated() == cuda.memory_reserved() >= cuda.memory_allocated()
    assert len(cuda.get_rng_state_all()) == 2
    first, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    first.record()
    with cuda.stream(side):
        end.record(side)
    side.synchronize()
    cuda.default_stream().synchronize()
    end.synchronize()
    assert end.query()
    assert first.elapsed_time(end) >= 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        first.elapsed_time(cuda.Event())
