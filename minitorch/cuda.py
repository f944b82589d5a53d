"""What programs ask of GPUs; on a machine without one, everything here says so."""

from __future__ import annotations

from typing import Any

from . import backend, random
from .errors import DeviceError


def is_available() -> bool:
    """True if CuPy is installed and finds a GPU."""
    return device_count() > 0


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


def synchronize(device: Any = None) -> None:
    """Waits until the GPU has nothing to do.

    Raises:
        DeviceError: There is no GPU.
    """
    backend.get("cuda").synchronize()


def manual_seed(seed: int) -> None:
    """The same as `minitorch.manual_seed`: one root seed serves every device."""
    random.manual_seed(seed)


manual_seed_all = manual_seed
