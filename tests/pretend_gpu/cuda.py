"""Devices and streams: the part of `cupy.cuda` that array code meets."""

from __future__ import annotations

import threading
from types import SimpleNamespace, TracebackType

from .counting import counters

DEVICE_COUNT = 2
MEMORY = 2**30


class CUDARuntimeError(RuntimeError):
    """The error class of the CUDA runtime."""


class _Current(threading.local):
    index = 0


_current = _Current()


def _checked(index: int) -> int:
    if not 0 <= index < DEVICE_COUNT:
        raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
    return index


class Device:
    """One pretend GPU; as a context it is the device where new arrays go.

    Args:
        device: Number of the device, another `Device`, or None for the current one.
    """

    def __init__(self, device: int | Device | None = None) -> None:
        self.id: int = _current.index if device is None else int(device)
        self._outer: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def __enter__(self) -> Device:
        self._outer.append(_current.index)
        self.use()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _current.index = self._outer.pop()

    def use(self) -> None:
        """Makes this the current device of the thread."""
        _current.index = _checked(self.id)

    def synchronize(self) -> None:
        """Waits for the device: counted."""
        _checked(self.id)
        counters.record("synchronisations")


class Stream:
    """A stream; all of them run at once with the host here, so only waits are seen."""

    null: Stream

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr = 0 if null else id(self)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def use(self) -> Stream:
        """Makes this the current stream."""
        return self

    def synchronize(self) -> None:
        """Waits for the stream: counted."""
        counters.record("synchronisations")

    def wait_event(self, event: Event) -> None:
        """Work sent here from now on waits for the event; the host does not."""


class Event:
    """A mark in a stream."""

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.disable_timing = disable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Puts the mark at the end of the stream."""

    def synchronize(self) -> None:
        """Waits for the mark: counted."""
        counters.record("synchronisations")


def get_elapsed_time(start: Event, end: Event) -> float:
    """Milliseconds between two marks: none, since work here takes no time."""
    return 0.0


class MemoryPool:
    """The pool of the device's memory, which is not followed here."""

    def used_bytes(self) -> int:
        """Bytes in use."""
        return 0

    def total_bytes(self) -> int:
        """Bytes held."""
        return 0

    def free_all_blocks(self) -> None:
        """Gives unused memory back."""


Stream.null = Stream(null=True)


def get_current_stream() -> Stream:
    """The stream that kernels go to."""
    return Stream.null


def get_device_id() -> int:
    """Number of the current device."""
    return _current.index


def is_available() -> bool:
    """True: the pretend GPU is always there."""
    return True


def _device_synchronize() -> None:
    counters.record("synchronisations")


runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    getDeviceCount=lambda: DEVICE_COUNT,
    getDevice=get_device_id,
    setDevice=lambda index: Device(index).use(),
    deviceSynchronize=_device_synchronize,
    getDeviceProperties=lambda index: {
        "name": b"Pretend GPU",
        "major": 9,
        "minor": 0,
        "totalGlobalMem": MEMORY,
        "multiProcessorCount": 1,
    },
    memGetInfo=lambda: (MEMORY, MEMORY),
)
