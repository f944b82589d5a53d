"""Timer: measures a run and ends it when its time is up."""

from __future__ import annotations

import math
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.duration import clock, parse_duration
from minitorch.callbacks.monitor import key, refuse
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

STAGES = ("train", "validate", "test")


class Timer(Callback):
    """Counts the time of training, validation and testing, and can limit that of training.

    Time that a resumed run had used before counts too. When the time is up the run ends after
    the batch (or epoch) with the status "completed"; min_epochs and min_steps come first.

    Args:
        duration: Time for training: "DD:HH:MM:SS", a timedelta, or a dict such as
            {"hours": 8}; None only measures.
        interval: Look at the clock after each "step" or "epoch".
        verbose: Print when the time is up.
    """

    order = Order.DECIDE

    def __init__(
        self,
        duration: str | timedelta | dict[str, float] | None = None,
        *,
        interval: str = "step",
        verbose: bool = True,
    ) -> None:
        self.duration = duration
        self.interval = interval
        self.verbose = verbose
        self._reset()

    def _reset(self) -> None:
        self._limit = math.inf
        self._before = dict.fromkeys(STAGES, 0.0)
        self._start: dict[str, float] = {}
        self._told = False

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        if self.interval not in ("step", "epoch"):
            refuse("Timer", "interval", self.interval, '"step" or "epoch"')
        self._reset()
        if self.duration is not None:
            self._limit = parse_duration("Timer: duration", self.duration).total_seconds()

    # Reading.

    def time_elapsed(self, stage: str = "train") -> float:
        """Seconds spent in a stage, "train", "validate" or "test", those before a resume too.

        Validation inside of a fit counts for "train" as well.

        Raises:
            ArgumentError: There is no such stage.
        """
        if stage not in STAGES:
            raise ArgumentError(
                f'Timer: stage must be "train", "validate" or "test". Got {stage!r}.'
            )
        start = self._start.get(stage)
        running = 0.0 if start is None else time.monotonic() - start
        return self._before[stage] + running

    def time_remaining(self) -> float | None:
        """Seconds left for training, not below zero; None without a limit."""
        return None if math.isinf(self._limit) else max(0.0, self._limit - self.time_elapsed())

    # Events.

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_end":
            return self.duration is not None and self.interval == "step"
        return super().listens(event)

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._begin("train")
        self._check(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if time.monotonic() - self._start["train"] + self._before["train"] >= self._limit:
            self._check(trainer)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._check(trainer)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._stop("train")

    def on_validation_start(self, trainer: Trainer, module: TaskModule) -> None:
        if not trainer.sanity_checking:
            self._begin("validate")

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._stop("validate")

    def on_test_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._begin("test")

    def on_test_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._stop("test")

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        for running in list(self._start):
            self._stop(running)

    def _begin(self, stage: str) -> None:
        self._start[stage] = time.monotonic()

    def _stop(self, stage: str) -> None:
        self._before[stage] = self.time_elapsed(stage)
        self._start.pop(stage, None)

    def _check(self, trainer: Trainer) -> None:
        if self.time_elapsed() < self._limit:
            return
        reason = f"the time of {clock(self._limit)} is up"
        trainer.stop(f"Timer: {reason}", status="completed")
        if self.verbose and not self._told:
            self._told = True
            trainer.print(f"Timer: {reason}")

    # State.

    def key_arguments(self) -> dict[str, Any]:
        """What tells two of them apart in a checkpoint."""
        return {"interval": self.interval}

    @property
    def state_key(self) -> str:
        return key(self, **self.key_arguments())

    def state_dict(self) -> dict[str, Any]:
        return {"elapsed": {stage: self.time_elapsed(stage) for stage in STAGES}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._before.update(state_dict["elapsed"])
