"""ProgressBar: where a run stands and how long it still takes, whatever shows it."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.duration import clock
from minitorch.callbacks.monitor import refuse
from minitorch.callbacks.progress_display import Display, LineDisplay
from minitorch.callbacks.progress_text import Pace, joined, metrics_text, rate_text
from minitorch.callbacks.run_length import remaining_batches
from minitorch.callbacks.timer import Timer

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

MIN_SECONDS = 0.1
"""Time between two redraws."""

_LABELS = {"validate": "Validation", "test": "Test", "predict": "Prediction"}
_LIVE_ONLY = frozenset(
    {
        "on_train_batch_end",
        "on_validation_batch_end",
        "on_test_batch_end",
        "on_predict_batch_end",
    }
)


class ProgressBar(Callback):
    """Base of progress bars: what the line says, and when; derive from it for another display.

    Metrics are those logged with prog_bar=True. The line is redrawn at most ten times a second,
    and nothing is computed or read from a device in between. Validation is shown in the same
    line. Without a terminal there is one line for each epoch, on stderr.

    Args:
        refresh_rate: Redraw at most after so many batches; 0 shows nothing.
        leave: Keep a line for each epoch.
    """

    order = Order.REPORT

    def __init__(self, refresh_rate: int = 1, *, leave: bool = False) -> None:
        self.refresh_rate = refresh_rate
        self.leave = leave
        self._display: Display = LineDisplay()
        self._reset()

    def _reset(self) -> None:
        self._pace = Pace()
        self._next = 0.0
        self._first_batch = True
        self._done = 0
        self._run_began = self._epoch_began = time.perf_counter()
        self._place = (0, 0)

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        rate = self.refresh_rate
        if isinstance(rate, bool) or not isinstance(rate, int) or rate < 0:
            refuse(type(self).__name__, "refresh_rate", rate, "an integer ≥ 0", "0 shows nothing.")
        self._display = self.choose_display()
        self._reset()

    def listens(self, event: str) -> bool:
        if self.refresh_rate == 0 and event != "setup":
            return False
        if event in _LIVE_ONLY and not self._display.live:
            return event == "on_train_batch_end" and self._first_batch
        return super().listens(event)

    def choose_display(self) -> Display:
        """Where the line of this run is shown."""
        raise NotImplementedError(f"{type(self).__name__} must override choose_display()")

    def metrics_text(self, values: dict[str, float], *, of_epoch: bool = False) -> str:
        """The metrics at the end of the line."""
        return metrics_text(values, of_epoch=of_epoch)

    def print(self, *values: Any, **options: Any) -> None:
        """Prints above the line."""
        self._display.print(*values, **options)

    # Training.

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._reset()

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._epoch_began = time.perf_counter()

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        now = time.perf_counter()
        if now >= self._next and batch_idx % self.refresh_rate == 0:
            self._show_training(trainer, now)
        if self._first_batch:
            self._first_batch = False
            if not self._display.live:
                trainer.rewire()

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        now = time.perf_counter()
        self._place = (trainer.position.epoch, trainer.position.batch)
        if self.leave:
            self._show_training(trainer, now)
            self._display.finish()
        elif now >= self._next:
            self._show_training(trainer, now)
        self._write_epoch(trainer, now)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        now = time.perf_counter()
        status, reason = trainer.ending or ("", "")
        if self._first_batch and status == "completed":
            trainer.print(f"Trainer: nothing was left to do: {reason}.")
            return
        cut = trainer.position.batch > 0
        if cut:
            self._write_epoch(trainer, now)
        if cut or not self.leave:
            self._show_training(trainer, now, ended=True)
        self._display.finish()

    def _show_training(
        self, trainer: Trainer, now: float, note: str = "", *, ended: bool = False
    ) -> None:
        self._next = now + MIN_SECONDS
        position, count = trainer.position, trainer.num_training_batches
        if position.batch:
            self._place = (position.epoch, position.batch)
        epoch, batch = self._place
        self._pace.tick(position.batches, now)
        time_text = clock(now - self._run_began) if ended else self._eta(trainer, now)
        metrics = self.metrics_text(trainer.metric_log.bar(current=ended))
        tail = {
            "note": note,
            "speed": rate_text(self._pace.per_second) if self._pace.per_second or not ended else "",
            "time": time_text,
            "metrics": metrics,
        }
        total = None if math.isinf(count) else int(count)
        self._display.show(_epoch_label(trainer, epoch), batch, total, tail)

    def _write_epoch(self, trainer: Trainer, now: float) -> None:
        if self._display.live or self._first_batch:  # a resumed run found the epoch's batches done
            return
        self._pace.tick(trainer.position.batches, now)
        epoch, batch, count = trainer.position.epoch, trainer.position.batch, ""
        if batch < trainer.num_training_batches < math.inf:
            count = f" of {int(trainer.num_training_batches)}"
        parts = [
            f"{_epoch_label(trainer, epoch)}: {batch}{count} batches",
            f"{clock(now - self._epoch_began)} in all",
            f"{rate_text(self._pace.per_second)} in training",
            self._eta(trainer, now),
            self.metrics_text(
                trainer.metric_log.bar(current=True), of_epoch=trainer.position.epoch_done
            ),
        ]
        self._display.line(joined(parts))

    def _eta(self, trainer: Trainer, now: float) -> str:
        left = self._pace.seconds_left(remaining_batches(trainer), now)
        for callback in trainer.callbacks:
            if isinstance(callback, Timer):
                limit = callback.time_remaining()
                left = left if limit is None else min(left, limit)
        return f"ETA {clock(left)}" if 0 < left < math.inf else ""

    # Validation inside of a fit, and evaluations of their own.

    def on_validation_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._start(trainer)

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._batch_done(trainer)

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._end(trainer)

    on_test_start = on_predict_start = on_validation_start
    on_test_batch_end = on_predict_batch_end = on_validation_batch_end
    on_test_end = on_predict_end = on_validation_end

    def _start(self, trainer: Trainer) -> None:
        self._done = 0
        now = time.perf_counter()
        if trainer.stage == "fit" and not trainer.sanity_checking:
            self._pace.pause(now)
        elif trainer.stage != "fit":
            self._run_began = now

    def _batch_done(self, trainer: Trainer) -> None:
        self._done += 1
        now = time.perf_counter()
        if now < self._next or self._done % self.refresh_rate:
            return
        if trainer.stage == "fit" and not trainer.sanity_checking:
            total = _text(_total(trainer.num_val_batches))
            self._show_training(trainer, now, f"validation {self._done}/{total}")
        else:
            self._show_evaluation(trainer, now)

    def _end(self, trainer: Trainer) -> None:
        now = time.perf_counter()
        if trainer.stage == "fit":
            if not trainer.sanity_checking:
                self._pace.resume(now)
            return
        self._show_evaluation(trainer, now, ended=True)
        self._display.finish()

    def _show_evaluation(self, trainer: Trainer, now: float, *, ended: bool = False) -> None:
        self._next = now + MIN_SECONDS
        if trainer.sanity_checking:
            total = _total(trainer.num_sanity_val_batches)
            self._display.show("Sanity check", self._done, total, {})
            return
        counts = {
            "validate": [batches.count for batches in trainer.eval_data],
            "test": trainer.num_test_batches,
            "predict": trainer.num_predict_batches,
        }
        stage = trainer.stage or ""
        total = _total(counts[stage])
        self._pace.tick(self._done, now)
        left = math.inf if total is None else total - self._done
        seconds = self._pace.seconds_left(left, now)
        time_text = f"ETA {clock(seconds)}" if 0 < seconds < math.inf else ""
        if ended:
            time_text = clock(now - self._run_began)
        tail = {"speed": rate_text(self._pace.per_second), "time": time_text}
        self._display.show(_LABELS[stage], self._done, total, tail)

    # Whatever happens the cursor ends up on a line of its own.

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        self._display.finish()

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._display.finish()


def _epoch_label(trainer: Trainer, epoch: int) -> str:
    """Counted from 0, as in messages, file names and loggers."""
    return f"Epoch {epoch}" + ("" if trainer.max_epochs == -1 else f"/{trainer.max_epochs - 1}")


def _total(counts: list[float]) -> int | None:
    total = sum(counts)
    return None if math.isinf(total) else int(total)


def _text(total: int | None) -> str:
    return "?" if total is None else str(total)
