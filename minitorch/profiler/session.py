"""profile: a profiler as a context, its schedule of steps, and where its traces go."""

from __future__ import annotations

import contextlib
import enum
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import ArgumentError
from ..ops.observing import labelled, observed
from .events import EventList
from .recorder import Recorder


class ProfilerActivity(enum.Enum):
    """What is watched."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """What a profiler does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The CPU, and a GPU if there is one."""
    from .. import cuda

    both = {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    return both if cuda.is_available() else {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Which steps are recorded: after `skip_first`, cycles of `wait`, `warmup` and `active` steps.

    Args:
        wait: Steps without the profiler.
        warmup: Steps in which it runs and forgets what it saw.
        active: Steps that are recorded.
        repeat: Cycles; 0 for as many as there are.
        skip_first: Steps before the first cycle.

    Returns:
        A function from the number of a step to its action.

    Raises:
        ArgumentError: A number is negative, or active is 0.
    """
    for name, value, least in (
        ("wait", wait, 0),
        ("warmup", warmup, 0),
        ("active", active, 1),
        ("repeat", repeat, 0),
        ("skip_first", skip_first, 0),
    ):
        if value < least:
            raise ArgumentError(f"schedule: {name} must be at least {least}. Got {value}.")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0 or (repeat and step >= repeat * cycle):
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str], worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], str]:
    """A value of `on_trace_ready` that writes each trace into a folder, for TensorBoard.

    Args:
        dir_name: The folder; it is made.
        worker_name: Beginning of the file's name; default host and process.
        use_gzip: Compress the file.

    Returns:
        A function that writes the trace of a profiler and gives the path.
    """

    def write(prof: profile) -> str:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        end = ".pt.trace.json" + (".gz" if use_gzip else "")
        path = os.path.join(dir_name, f"{worker}.{time.time_ns()}{end}")
        prof.export_chrome_trace(path)
        return path

    return write


class profile:
    """Measures every operation inside: time, and on request shapes, memory, FLOPs and lines.

        with profile(profile_memory=True) as prof:
            model(x).sum().backward()
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))

    An operation costs some ten µs more while it is measured, and nothing otherwise.

    Args:
        activities: What is watched; with a GPU it is waited for after every operation, so that its
            work is in the time of the operation that asked for it. Default: all there is.
        schedule: From the number of a step to its action, see `schedule`; the program then calls
            `step()` after each.
        on_trace_ready: Called with the profiler after each cycle of the schedule, and at the end
            without one.
        record_shapes: Keep the shapes of inputs.
        profile_memory: Keep the bytes of the arrays that operations return.
        with_stack: Keep the user's line of each call.
        with_flops: Keep the FLOPs of products.
        with_modules, experimental_config, execution_trace_observer, acc_events, use_cuda: Accepted
            for PyTorch's signature.

    Raises:
        ArgumentError: An activity is not supported on this machine.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
    ) -> None:
        there = supported_activities()
        wanted = there if activities is None else set(activities)
        if not wanted:
            raise ArgumentError("profile: at least one activity must be watched. Got none.")
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self._options = {
            "shapes": record_shapes,
            "memory": profile_memory,
            "flops": with_flops,
            "stack": with_stack,
        }
        self._on_gpu = ProfilerActivity.CUDA in wanted & there
        self._metadata: dict[str, Any] = {}
        self._recorder: Recorder | None = None
        self._events = EventList()
        self._open = contextlib.ExitStack()
        self._label: Any = None
        self._running = False

    # Beginning and end.

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begins to measure, as the schedule says."""
        self._running = True
        self._follow(self._action())

    def stop(self) -> None:
        """Ends measuring; without a schedule, or in the middle of a cycle, the trace is ready."""
        if not self._running:
            return
        self._running = False
        recorded = self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._close()
        if recorded and self._events:
            self._ready()

    def step(self) -> None:
        """The next step begins."""
        before = self._action()
        self._end_label()
        if before is ProfilerAction.RECORD_AND_SAVE and self.schedule is not None:
            self._close()
            self._ready()
        self.step_num += 1
        self._follow(self._action(), before)

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def _follow(self, now: ProfilerAction, before: ProfilerAction | None = None) -> None:
        if now is ProfilerAction.NONE:
            self._close()
            return
        fresh = self._recorder is None or (
            before is ProfilerAction.WARMUP and now is not ProfilerAction.WARMUP
        )
        if fresh:
            self._close()
            synchronize = _synchronize if self._on_gpu else None
            self._recorder = Recorder(synchronize=synchronize, **self._options)
            self._open.enter_context(observed(self._recorder))
        if self.schedule is not None:
            self._label = labelled(f"ProfilerStep#{self.step_num}")
            self._label.__enter__()

    def _end_label(self) -> None:
        label, self._label = self._label, None
        if label is not None:
            label.__exit__(None, None, None)

    def _close(self) -> None:
        self._end_label()
        self._open.close()
        if self._recorder is not None:
            self._events = EventList(self._recorder.events)
            self._recorder = None

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    # Results.

    def events(self) -> EventList:
        """The events, in the order in which they ended."""
        return self._events if self._recorder is None else EventList(self._recorder.events)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """One average for each name; `.table()` shows them. See `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> Any:
        """Everything as one average."""
        return self.events().total_average()

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The averages as text; see `EventList.table`."""
        return self.key_averages().table(sort_by=sort_by, row_limit=row_limit, **options)

    @property
    def self_cpu_time_total(self) -> float:
        """Time of all operations, in µs."""
        return self.events().self_cpu_time_total

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events for chrome://tracing, Perfetto or TensorBoard; ".gz" compresses."""
        self.events().export_chrome_trace(path, **self._metadata)

    def add_metadata(self, key: str, value: str) -> None:
        """An entry of the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """An entry of the trace, as JSON."""
        import json

        self._metadata[key] = json.loads(value)


def _synchronize() -> None:
    from .. import cuda

    cuda.synchronize()
