"""HTMLReport: a run as one HTML file that opens anywhere, during the run and after it."""

from __future__ import annotations

import inspect
import os
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.duration import clock
from minitorch.callbacks.monitor import refuse
from minitorch.callbacks.progress_text import number, rate_text
from minitorch.callbacks.report_series import Curve, Thinned
from minitorch.callbacks.report_time import RunClock

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

_BUSY = 20.0
"""Between two writes lies at least so many times what one takes: 5 % of a run at most."""


class HTMLReport(Callback):
    """Writes a page with all curves, the learning rate, the speed, messages and configuration.

    The file needs no network and no server. While the run goes on it is replaced as a whole from
    time to time and loads itself again in the browser; the last version stands after every end,
    exceptions and Ctrl-C included. Curves are those that loggers get (`log_every_n_steps`).

    Args:
        path: The file; default "report.html" in the run's log folder.
        title: Heading; default the class of the module.
        live: Also write during the run; False only at its end.
        refresh_seconds: Seconds between two versions, at least; longer where writing takes long.
    """

    order = Order.REPORT

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        live: bool = True,
        refresh_seconds: float = 5.0,
    ) -> None:
        self.path = path
        self.title = title
        self.live = live
        self.refresh_seconds = refresh_seconds
        self._reset()

    def _reset(self) -> None:
        self._file = ""
        self._next = 0.0
        self._broken = False
        self._error: BaseException | None = None
        self._rates: dict[str, Thinned] = {}
        self._clock = RunClock()
        self._fixed: dict[str, Any] = {}
        self._results: dict[str, float] = {}

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        seconds = self.refresh_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
            refuse("HTMLReport", "refresh_seconds", seconds, "a number > 0")
        if stage == "fit":
            self._reset()

    def listens(self, event: str) -> bool:
        trainer = self._trainer
        writes = trainer is None or (trainer.is_global_zero and not trainer.fast_dev_run)
        if event != "setup" and not writes:
            return False
        return super().listens(event)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        from minitorch.callbacks.model_summary import summarize

        self._file = os.fspath(self.path or os.path.join(trainer.log_dir, "report.html"))
        os.makedirs(os.path.dirname(os.path.abspath(self._file)), exist_ok=True)
        self._fixed = {
            "tables": {
                "Hyper-parameters": [(k, str(v), False) for k, v in module.hparams.items()],
                "Trainer": settings_table(trainer),
                "Environment": environment(trainer),
            },
            "texts": {"Model": str(summarize(module, max_depth=2))},
        }

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._clock.start(trainer, time.perf_counter())
        self._write_if_due(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        now = time.perf_counter()
        self._clock.batch(trainer, now)
        for index, optimizer in enumerate(trainer.optimizers):
            for place, group in enumerate(optimizer.param_groups):
                name = _rate_name(trainer, index, place, group)
                if name not in self._rates:
                    self._rates[name] = Thinned()
                self._rates[name].add(trainer.global_step, float(group["lr"]))
        if now >= self._next:
            self._write_if_due(trainer)

    def on_validation_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._clock.pause(time.perf_counter())

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._write_if_due(trainer)
        self._clock.resume(time.perf_counter())

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._write_if_due(trainer)

    def on_test_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._results = trainer.metric_log.epoch_results("test")

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        if trainer.stage == "fit":
            self._error = exception

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if self._fixed and stage in ("fit", "test"):
            self._write(trainer, final=True)

    # Writing.

    def _write_if_due(self, trainer: Trainer) -> None:
        if self.live and not self._broken and time.perf_counter() >= self._next:
            self._write(trainer, final=False)

    def _write(self, trainer: Trainer, *, final: bool) -> None:
        from minitorch.callbacks.report_page import page
        from minitorch.errors import CheckpointError
        from minitorch.io.atomic import replacing

        begin = time.perf_counter()
        try:
            with replacing(self._file) as file:
                file.write(page(self._facts(trainer, final)).encode("utf-8", "replace"))
        except CheckpointError as error:
            self._broken = True
            warnings.warn(
                f"HTMLReport: {self._file} cannot be written ({error.__cause__}). Training goes on "
                "without it; it is tried once more at the end. Pass another path, or free space.",
                UserWarning,
                stacklevel=2,
            )
        now = time.perf_counter()
        self._next = now + max(self.refresh_seconds, _BUSY * (now - begin))

    def _facts(self, trainer: Trainer, final: bool) -> Any:
        from minitorch.callbacks.report_page import Facts

        status, reason = self._ending(trainer, final)
        log = trainer.metric_log
        history = {
            name: [(float(step), value) for step, value in points]
            for name, points in log.history.items()
            if not name.startswith("lr-")
        }
        curves = [Curve(name, "", rate.points) for name, rate in self._rates.items()]
        speed = [Curve(f"{self._clock.unit}/s", "", self._clock.speed.points)]
        error = ""
        if self._error is not None and status == "failed":
            error = "".join(traceback.format_exception(self._error)).rstrip()
        return Facts(
            title=self.title or type(trainer.module).__name__,
            status=status,
            reason=reason,
            tiles=self._tiles(trainer, history),
            share=self._clock.share(trainer),
            history=history,
            extra={"learning rate": curves, "throughput": speed},
            messages=(*trainer.checks.found, *trainer.logger_group.failures),
            error=error,
            results=self._results,
            refresh_seconds=None if final else self.refresh_seconds,
            written=time.strftime("%Y-%m-%d %H:%M:%S"),
            **self._fixed,
        )

    def _ending(self, trainer: Trainer, final: bool) -> tuple[str, str]:
        if not final:
            return "running", ""
        if self._error is not None:
            kind = type(self._error).__name__
            status = "interrupted" if isinstance(self._error, KeyboardInterrupt) else "failed"
            return status, f"{kind}: {self._error}".rstrip(": ")
        return trainer.ending or ("completed", "")

    def _tiles(self, trainer: Trainer, history: Mapping[str, Any]) -> list[tuple[str, str]]:
        limit = f" / {trainer.max_epochs}" if trainer.max_epochs != -1 else ""
        tiles = [
            ("epochs", f"{trainer.current_epoch}{limit}"),
            ("updates", f"{trainer.global_step:,}"),
            ("time", clock(self._clock.seconds)),
            ("batches", rate_text(self._clock.batches_per_second)),
        ]
        left = self._clock.seconds_left(trainer)
        if trainer.ending is None and self._error is None and left < float("inf"):
            tiles.append(("left", clock(left)))
        for name, points in history.items():
            if not name.endswith("_step") and len(tiles) < 8:
                tiles.append((name, number(points[-1][1])))
        return tiles


def _rate_name(trainer: Trainer, index: int, place: int, group: Mapping[str, Any]) -> str:
    optimizer = trainer.optimizers[index]
    name = f"lr {type(optimizer).__name__}" + (
        f" {index + 1}" if len(trainer.optimizers) > 1 else ""
    )
    return name + (f" {group.get('name', place + 1)}" if len(optimizer.param_groups) > 1 else "")


def settings_table(trainer: Trainer) -> list[tuple[str, str, bool]]:
    """The Trainer's arguments: those that were given, in their order, then all callbacks."""
    rows = []
    for name, parameter in inspect.signature(type(trainer).__init__).parameters.items():
        value = getattr(trainer.settings, name, parameter.default)
        if name not in ("self", "callbacks", "logger") and value != parameter.default:
            rows.append((name, str(value), True))
    callbacks = [type(cb).__name__ for cb in trainer.callbacks if not _is_core(cb)]
    rows.append(("callbacks", ", ".join(callbacks), False))
    loggers = [type(logger).__name__ for logger in trainer.loggers]
    return [*rows, ("loggers", ", ".join(loggers) or "none", False)]


def _is_core(callback: Callback) -> bool:
    return type(callback).__module__.startswith("minitorch.callbacks.core")


def environment(trainer: Trainer) -> list[tuple[str, str, bool]]:
    """What the run runs on, as (name, value, False)."""
    import numpy

    import minitorch

    rows: dict[str, str] = {
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": " ".join(sys.argv),
        "host": f"{platform.node()}, process {os.getpid()}",
        "system": platform.platform(terse=True),
        "device": str(trainer.device),
        "processors": str(os.cpu_count()),
        "Python": platform.python_version(),
        "minitorch": str(minitorch.__version__),
        "NumPy": numpy.__version__,
    }
    return [(name, value, False) for name, value in rows.items()]
