"""What a GPU is."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import backend
from . import index_of, is_available


class DeviceProperties(NamedTuple):
    """Name, memory in bytes and kind of a GPU."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What the GPU is.

    Raises:
        DeviceError: There is no GPU.
    """
    found = backend.get("cuda").xp.cuda.runtime.getDeviceProperties(index_of(device))
    name = found["name"]
    return DeviceProperties(
        name.decode() if isinstance(name, bytes) else name,
        int(found["major"]),
        int(found["minor"]),
        int(found["totalGlobalMem"]),
        int(found["multiProcessorCount"]),
    )


def get_device_name(device: Any = None) -> str:
    """The name of the GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of the GPU, such as (9, 0)."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True if there is a GPU that computes in bfloat16."""
    return is_available() and get_device_capability()[0] >= 8
