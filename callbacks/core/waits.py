"""Where a run waits: for the loader, and for the device at the user's lines. It is measured."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch import backend
from minitorch.autograd.mode import state
from minitorch.callbacks.callback import Callback, Order
from minitorch.checks import is_intended

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.trainer import TaskModule, Trainer

_FIRST, _LAST = 5, 105
_SHARE, _SECONDS = 0.5, 2.0
_READS = 10


class LoaderWait(Callback):
    """Measures how long batches 5 to 105 are waited for; a large share is a warning.

    Attributes:
        clock: Seconds that only grow.
    """

    order = Order.PREPARE
    clock: Callable[[], float] = staticmethod(time.perf_counter)

    def __init__(self) -> None:
        self._count = 0
        self._waited = self._began = 0.0

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._count, self._waited = 0, 0.0

    def measured(self, trainer: Trainer, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, which gets the next batch, with its time taken until enough were seen."""
        if trainer.checks.meant("loader-bottleneck"):
            return call

        def next_batch(*args: Any) -> Any:
            start = self.clock()
            batch = call(*args)
            self._count += 1
            if self._count == _FIRST:
                self._began = self.clock()
            elif self._count > _FIRST:
                self._waited += self.clock() - start
                if self._count == _LAST:
                    trainer.plan.next = call
                    self._report(trainer, self.clock() - self._began)
            return batch

        return next_batch

    def _report(self, trainer: Trainer, total_seconds: float) -> None:
        share = self._waited / total_seconds if total_seconds > 0 else 0.0
        if share < _SHARE or total_seconds < _SECONDS:
            return
        loader: Any = trainer.train_data.loader
        workers = getattr(loader, "num_workers", None)
        fix = "Prepare the batches ahead in another thread."
        if workers is not None:
            fix = f"DataLoader(num_workers={max(2, 2 * workers)}) reads ahead"
            fix += f"; now it is {workers}. Python code that holds the interpreter lock also needs "
            fix += 'worker_type="process".'
        trainer.checks.warn(
            "loader-bottleneck",
            f"train_dataloaders: steps should not wait for batches. Got {share:.0%} of "
            f"{total_seconds:.1f} s spent waiting over {_LAST - _FIRST} batches; without it an "
            f"epoch takes {1 - share:.0%} of its time. {fix}",
        )


class HostReads(Callback):
    """On a GPU: counts reads of device values in training_step by the line that makes them.

    A read makes the host wait until the device has caught up. After ten batches the lines that read
    in each of them are named, with the time that it took.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._record: Any = None
        self._inside = self._active = False
        self._lines: dict[str, list[float]] = {}
        self._batches = self._thread = 0

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        on_gpu = trainer.device.type != "cpu"
        self._active = on_gpu and stage == "fit" and not trainer.checks.meant("host-sync-in-step")
        self._lines, self._batches = {}, 0
        self._thread = threading.get_ident()
        if self._active:
            self._wrap(trainer)

    def listens(self, event: str) -> bool:
        if event in ("on_train_batch_start", "transform_loss", "on_train_batch_end"):
            return self._active
        return super().listens(event)

    def _wrap(self, trainer: Trainer) -> None:
        record = self._record = backend.get(trainer.device.type)

        def to_host(array: Any) -> Any:
            if not self._inside or threading.get_ident() != self._thread:  # it writes a file
                return record.to_host(array)
            if is_intended("host-sync-in-step"):
                return record.to_host(array)
            start = time.perf_counter()
            value = record.to_host(array)
            entry = self._lines.setdefault(trainer.checks.line(), [0, 0.0])
            entry[0] += 1
            entry[1] += time.perf_counter() - start
            return value

        backend.register(trainer.device.type, dataclasses.replace(record, to_host=to_host))

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        self._inside = not state.noting

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        self._inside = False
        return loss

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._inside = False
        self._batches += 1
        if self._batches <= _READS:
            return
        self._stop()
        often = {line: entry for line, entry in self._lines.items() if entry[0] >= _READS}
        if often:
            shown = "; ".join(
                f"{line} ({int(n)} times, {1000 * seconds:.1f} ms)"
                for line, (n, seconds) in sorted(often.items(), key=lambda pair: -pair[1][1])[:4]
            )
            trainer.checks.warn(
                "host-sync-in-step",
                f"training_step: reading a value makes the host wait for the device. Got, in "
                f"{_READS} batches: {shown}. Log tensors with self.log, which reads them together, "
                "and keep .item(), float(), if and print out of the step.",
            )
        trainer.rewire()

    def _stop(self) -> None:
        if self._record is not None:
            backend.register(self._record.device_type, self._record)
        self._record, self._active = None, False

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._stop()


class SlowModes(Callback):
    """Warns once when a long run still has anomaly mode on."""

    order = Order.REPORT
    after_updates = 100

    def listens(self, event: str) -> bool:
        if event == "on_after_optimizer_step":
            trainer = self._trainer
            asked = trainer is not None and trainer.settings.detect_anomaly
            return (asked or state.anomaly) and trainer is not None and trainer.checks.on
        return super().listens(event)

    def on_after_optimizer_step(self, trainer: Trainer, module: TaskModule, optimizer: Any) -> None:
        check = "debug-mode-left-on"
        if trainer.global_step == self.after_updates and not trainer.checks.meant(check):
            trainer.checks.warn(
                check,
                f"Trainer: anomaly mode is for finding a fault. Got it in a run of more than "
                f"{self.after_updates} updates, each of which notes a line per operation and takes "
                "several times as long. Remove detect_anomaly=True; the Trainer names the "
                "operation of a nan without it.",
            )
