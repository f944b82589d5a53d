"""One record for each array library, found by device type or by the type of an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device import CPU, device
from ..errors import DeviceError


@dataclass(frozen=True)
class Backend:
    """What the framework needs to know of one array library.

    Attributes:
        name: `"numpy"`, `"cupy"` or the name of a test double.
        device_type: `"cpu"` or `"cuda"`.
        xp: The namespace with NumPy's function names.
        array_type: The class of its arrays.
        to_host: Array to `numpy.ndarray`; waits for the device.
        from_host: `(numpy.ndarray, index)` to an array on that device.
        index_of: Number of the device that holds an array.
        move: `(array, index)` to an array of the same library on another device.
        current_index: Number of the device that new arrays go to.
        device_count: How many devices there are.
        use: Makes a device the one that new arrays go to and operations run on.
        synchronize: Waits until the device is idle.
    """

    name: str
    device_type: str
    xp: Any
    array_type: type
    to_host: Callable[[Any], np.ndarray]
    from_host: Callable[[np.ndarray, int | None], Any]
    index_of: Callable[[Any], int | None]
    move: Callable[[Any, int | None], Any]
    current_index: Callable[[], int | None]
    device_count: Callable[[], int]
    use: Callable[[int | None], None]
    synchronize: Callable[[], None]


def _same(array: Any) -> Any:
    return array


NUMPY = Backend(
    name="numpy",
    device_type="cpu",
    xp=np,
    array_type=np.ndarray,
    to_host=_same,
    from_host=lambda array, index: array,
    index_of=lambda array: None,
    move=lambda array, index: array,
    current_index=lambda: None,
    device_count=lambda: 1,
    use=lambda index: None,
    synchronize=lambda: None,
)

_by_device: dict[str, Backend] = {"cpu": NUMPY}
_by_array: dict[type, Backend] = {np.ndarray: NUMPY}


def register(device_type: str, backend: Backend) -> None:
    """Makes `backend` serve the devices of `device_type`; tests put a pretend GPU here."""
    _by_device[device_type] = backend
    _by_array[backend.array_type] = backend


def unregister(device_type: str) -> None:
    """Removes the backend of `device_type`, so that the next use finds the real one again."""
    backend = _by_device.pop(device_type)
    _by_array.pop(backend.array_type)


def get(device_type: str) -> Backend:
    """The backend of a device type; imports CuPy on the first use of `"cuda"`.

    Args:
        device_type: "cpu" or "cuda".

    Raises:
        DeviceError: CuPy is not installed or finds no GPU.
    """
    backend = _by_device.get(device_type)
    if backend is None:
        backend = _load_cupy()
        register(device_type, backend)
    return backend


def _load_cupy() -> Backend:
    try:
        from . import cupy_backend

        return cupy_backend.make()
    except ImportError as error:
        raise DeviceError(
            f"device: 'cuda' needs CuPy, which cannot be imported ({error}). "
            "Install minitorch-trainer[cuda12] or [cuda13], or use device 'cpu'."
        ) from error


def of(array: Any) -> Backend:
    """The backend that an array belongs to.

    Raises:
        DeviceError: No backend knows arrays of this type.
    """
    backend = _by_array.get(type(array))
    if backend is None:
        if isinstance(array, np.ndarray | np.generic):
            return NUMPY
        raise DeviceError(
            f"backend: arrays of type {type(array).__name__} belong to no device known here. "
            "Use NumPy or CuPy arrays."
        )
    return backend


def is_array(value: Any) -> bool:
    """True for arrays of any registered backend."""
    return type(value) in _by_array or isinstance(value, np.ndarray)


def namespace(array: Any) -> Any:
    """The module with NumPy's names that works on `array`."""
    return np if type(array) is np.ndarray else of(array).xp


def device_of(array: Any) -> device:
    """The device that holds `array`."""
    if type(array) is np.ndarray:
        return CPU
    backend = of(array)
    if backend is NUMPY:
        return CPU
    return device(backend.device_type, backend.index_of(array))


def to_host(array: Any) -> np.ndarray:
    """The values of `array` as a NumPy array (the array itself on the CPU); waits for a GPU."""
    return array if type(array) is np.ndarray else of(array).to_host(array)


def from_host(array: np.ndarray, target: device) -> Any:
    """`array` on the device `target` (the array itself for the CPU)."""
    if target.type == "cpu":
        return array
    return get(target.type).from_host(array, target.index)


def transfer(array: Any, target: device) -> Any:
    """`array` on the device `target`; the array itself if it is there already."""
    source = of(array)
    if source.device_type == target.type:
        if target.index is None or source.index_of(array) == target.index:
            return array
        return source.move(array, target.index)
    host = source.to_host(array)
    return host if target.type == "cpu" else get(target.type).from_host(host, target.index)
