"""Streams and events of a GPU."""

from __future__ import annotations

from typing import Any

from .. import backend
from ..errors import ArgumentError


def _cuda() -> Any:
    """CuPy's side of CUDA.

    Raises:
        DeviceError: There is no GPU.
    """
    return backend.get("cuda").xp.cuda


class Stream:
    """A queue of work on the GPU; `with stream(s):` sends work there.

    Raises:
        DeviceError: There is no GPU.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, _found: Any = None) -> None:
        self.cupy = _cuda().Stream(non_blocking=True) if _found is None else _found

    def synchronize(self) -> None:
        """Waits until the work of the stream is done."""
        self.cupy.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        """Work sent here from now on waits for the work that is in `stream`."""
        self.wait_event(stream.record_event())

    def wait_event(self, event: Event) -> None:
        """Work sent here from now on waits for the event."""
        self.cupy.wait_event(event.cupy)

    def record_event(self, event: Event | None = None) -> Event:
        """Marks the present end of the queue."""
        event = Event() if event is None else event
        event.record(self)
        return event


class stream:
    """Inside, work goes to a stream; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.cupy.__enter__()

    def __exit__(self, *exc: Any) -> None:
        if self.stream is not None:
            self.stream.cupy.__exit__(*exc)


def current_stream(device: Any = None) -> Stream:
    """The stream that work goes to now."""
    return Stream(_found=_cuda().get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to outside of every `with stream(…)`."""
    return Stream(_found=_cuda().Stream.null)


class Event:
    """A mark in a queue of work.

    Args:
        enable_timing: The event can be asked for times.
        blocking: Accepted for PyTorch's signature.

    Raises:
        DeviceError: There is no GPU.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.timed = enable_timing
        self.cupy = _cuda().Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Puts the mark at the present end of the queue."""
        self.cupy.record(None if stream is None else stream.cupy)

    def synchronize(self) -> None:
        """Waits until the work before the mark is done."""
        self.cupy.synchronize()

    def query(self) -> bool:
        """True if the work before the mark is done."""
        return bool(self.cupy.done)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to the other one.

        Raises:
            ArgumentError: One of them was made without `enable_timing`.
        """
        if not (self.timed and end_event.timed):
            raise ArgumentError(
                "elapsed_time: both events need Event(enable_timing=True). Got one without."
            )
        return float(_cuda().get_elapsed_time(self.cupy, end_event.cupy))
