"""CuPy as a backend. The only file that imports it."""

from __future__ import annotations

from typing import Any

import cupy  # type: ignore[import-not-found, unused-ignore]
import numpy as np

from ..errors import DeviceError
from .registry import Backend


def _from_host(array: np.ndarray, index: int | None) -> Any:
    with cupy.cuda.Device(_checked(index)):
        if array.ndim == 0:  # a number travels with the kernel that writes it, not as a transfer
            return cupy.full((), array.item(), array.dtype)
        return cupy.asarray(array)


def _move(array: Any, index: int | None) -> Any:
    with cupy.cuda.Device(_checked(index)):
        return cupy.asarray(array)


def _checked(index: int | None) -> int:
    count = cupy.cuda.runtime.getDeviceCount()
    wanted = cupy.cuda.Device().id if index is None else index
    if wanted >= count:
        raise DeviceError(
            f"device: 'cuda:{wanted}' does not exist. This machine has {count} GPU(s). "
            f"Use 'cuda:0' to 'cuda:{count - 1}'."
        )
    return int(wanted)


def make() -> Backend:
    """The backend record for CuPy.

    Raises:
        DeviceError: CuPy is installed but finds no GPU or driver.
    """
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(
            f"device: CuPy is installed but finds no usable GPU ({error}). "
            "Check the driver, or use device 'cpu'."
        ) from error
    return Backend(
        name="cupy",
        device_type="cuda",
        xp=cupy,
        array_type=cupy.ndarray,
        to_host=cupy.asnumpy,
        from_host=_from_host,
        index_of=lambda array: int(array.device.id),
        move=_move,
        current_index=lambda: int(cupy.cuda.Device().id),
        device_count=lambda: int(cupy.cuda.runtime.getDeviceCount()),
        use=lambda index: cupy.cuda.Device(_checked(index)).use(),
        synchronize=lambda: cupy.cuda.Device().synchronize(),
    )
