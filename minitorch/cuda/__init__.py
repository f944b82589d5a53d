"""What programs ask of GPUs; on a machine without one, everything here says so."""

from __future__ import annotations

from typing import Any

from .. import backend
from ..errors import DeviceError
from ..lazy import lazy

_HOLDERS = {
    "memory": "empty_cache ipc_collect max_memory_allocated max_memory_cached max_memory_reserved "
    "mem_get_info memory_allocated memory_cached memory_reserved memory_summary "
    "reset_max_memory_allocated reset_peak_memory_stats",
    "properties": "get_device_capability get_device_name get_device_properties is_bf16_supported",
    "randomness": "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed "
    "seed_all set_rng_state set_rng_state_all",
    "streams": "Event Stream current_stream default_stream stream",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS, ("amp",))


def is_available() -> bool:
    """True if CuPy is installed and finds a GPU."""
    return device_count() > 0


def is_initialized() -> bool:
    """True if there is a GPU: nothing has to be initialised here."""
    return is_available()


def device_count() -> int:
    """The number of GPUs."""
    try:
        return backend.get("cuda").device_count()
    except DeviceError:
        return 0


def current_device() -> int:
    """The number of the GPU that `"cuda"` without a number means.

    Raises:
        DeviceError: There is no GPU.
    """
    return backend.get("cuda").current_index() or 0


def set_device(device: Any) -> None:
    """Makes a GPU the one that `"cuda"` without a number means.

    Args:
        device: Its number, a device or its name.

    Raises:
        DeviceError: There is no such GPU.
    """
    backend.get("cuda").use(index_of(device))


class device:
    """Inside, the GPU is the one that `"cuda"` without a number means.

    Args:
        device: Its number, a device or its name; None changes nothing.
    """

    def __init__(self, device: Any) -> None:
        self._index = None if device is None else index_of(device)
        self._before: list[int | None] = []

    def __enter__(self) -> device:
        if self._index is not None:
            self._before.append(current_device())
            backend.get("cuda").use(self._index)
        return self

    def __exit__(self, *exc: Any) -> None:
        if self._index is not None:
            backend.get("cuda").use(self._before.pop())


def index_of(device: Any) -> int:
    """The number of the GPU that `device` names; the current one for None."""
    from ..device import device as Device

    if device is None:
        return current_device()
    if isinstance(device, int):
        return device
    index = Device(device).index
    return current_device() if index is None else index


def synchronize(device: Any = None) -> None:
    """Waits until the GPU has nothing to do.

    Raises:
        DeviceError: There is no GPU.
    """
    backend.get("cuda").synchronize()
