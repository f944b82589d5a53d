"""OpsProfiler: time and memory of every operation in a few steps of a run, with a trace."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch import profiler as library
from minitorch.ops.observing import labelled
from minitorch.trainer.profiler import Profiler

if TYPE_CHECKING:
    from minitorch.trainer.status import Status


class OpsProfiler(Profiler):
    """Measures operations in batches 3 to 5 of a fit; `Trainer(profiler="ops")`.

    The table goes to the terminal and, as a text, to the loggers; the trace lies in the run's log
    folder, where TensorBoard and Perfetto find it. An evaluation is measured as a whole.

    Args:
        dirpath: Folder for trace and summary; default the run's log folder.
        filename: Write the summary to a file instead of the terminal.
        group_by_input_shapes: A row for each operation and shapes of inputs.
        export_to_chrome: Write the trace.
        row_limit: Rows of the table; -1 for all.
        sort_by_key: Order of the table, see `EventList.table`.
        record_module_names: Show which module an operation belongs to in the trace.
        schedule: Which batches are measured, see `minitorch.profiler.schedule`.
        profiler_kwargs: More arguments of `minitorch.profiler.profile`.

    Attributes:
        traces: Paths of the traces of the last run.
    """

    def __init__(
        self,
        dirpath: str | os.PathLike[str] | None = None,
        filename: str | None = None,
        group_by_input_shapes: bool = False,
        export_to_chrome: bool = True,
        row_limit: int = 20,
        sort_by_key: str = "self_cpu_time_total",
        record_module_names: bool = True,
        schedule: Callable[[int], library.ProfilerAction] | None = None,
        **profiler_kwargs: Any,
    ) -> None:
        super().__init__(dirpath, filename)
        self.group_by_input_shapes = group_by_input_shapes
        self.export_to_chrome = export_to_chrome
        self.row_limit = row_limit
        self.sort_by_key = sort_by_key
        self.record_module_names = record_module_names
        self.schedule = schedule
        self._options = {"profile_memory": True, "with_flops": True, **profiler_kwargs}
        self._options.setdefault("record_shapes", group_by_input_shapes)
        self._profile: library.profile | None = None
        self._batches = 0
        self._handles: list[Any] = []
        self._open: list[Any] = []
        self._events = library.EventList()
        self.traces: list[str] = []

    def setup(self, trainer: Status, stage: str) -> None:
        """Begins to measure."""
        plan = None
        if stage == "fit":
            plan = self.schedule or library.schedule(wait=1, warmup=1, active=3, repeat=1)
        self.traces, self._batches = [], 0
        self._profile = library.profile(
            schedule=plan, on_trace_ready=lambda prof: self._ready(trainer, prof), **self._options
        )
        if self.record_module_names:
            self._label_modules()
        self._profile.start()

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call` under a label; each next batch is a step of the schedule."""
        batch = name == "next batch"

        def timed_call(*args: Any, **kwargs: Any) -> Any:
            if batch and self._profile is not None:
                self._batches += 1
                if self._batches > 1:
                    self._profile.step()
            with labelled(name):
                return call(*args, **kwargs)

        return timed_call

    def start(self, action_name: str) -> None:
        """A part begins."""
        label = labelled(action_name)
        label.__enter__()
        self._open.append(label)

    def stop(self, action_name: str) -> None:
        """It is over."""
        self._open.pop().__exit__(None, None, None)

    def summary(self) -> str:
        """The table of the last trace."""
        if not self._events:
            return "OpsProfiler: no step was measured; the run was shorter than the schedule."
        averages = self._events.key_averages(self.group_by_input_shapes)
        return averages.table(sort_by=self.sort_by_key, row_limit=self.row_limit)

    def teardown(self, trainer: Status, stage: str) -> None:
        """Ends measuring, shows the table, and passes it on to the loggers."""
        prof, self._profile = self._profile, None
        while self._handles:
            self._handles.pop().remove()
        if prof is None:
            return
        prof.stop()
        super().teardown(trainer, stage)

    def _ready(self, trainer: Status, prof: library.profile) -> None:
        self._events = prof.events()
        text = f"```\n{self.summary()}\n```"
        if self.export_to_chrome:
            write = library.tensorboard_trace_handler(os.path.dirname(self.path(trainer, "x")))
            self.traces.append(write(prof))
            text += f"\n\nTrace for TensorBoard, Perfetto and chrome://tracing: {self.traces[-1]}"
        trainer.logger_group.log_text("profiler/operations", text, trainer.global_step)

    def _label_modules(self) -> None:
        from minitorch.nn.modules import module as hooks

        def enter(part: Any, args: Any) -> None:
            self.start(type(part).__name__)

        def leave(part: Any, args: Any, output: Any) -> None:
            self.stop(type(part).__name__)

        self._handles.append(hooks.register_module_forward_pre_hook(enter))
        self._handles.append(hooks.register_module_forward_hook(leave, always_call=True))
