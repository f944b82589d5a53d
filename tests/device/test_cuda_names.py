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
