"""RunClock: how fast a run is, and how much of it is done."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from minitorch.callbacks.progress_text import Pace
from minitorch.callbacks.report_series import Thinned
from minitorch.callbacks.run_length import remaining_batches
from minitorch.errors import DataError

if TYPE_CHECKING:
    from minitorch.trainer import Trainer

_WINDOW_SECONDS = 0.25


class RunClock:
    """Speed of a fit in windows of a quarter of a second, and the time that is left.

    Attributes:
        speed: Curve (global_step, units per second).
        unit: "samples", or "batches" where the size of a batch cannot be read from its tensors.
        seconds: Time since training began.
        batches_per_second: Of the last windows.
    """

    def __init__(self) -> None:
        self.speed = Thinned()
        self.unit = "samples"
        self.seconds = 0.0
        self._pace = Pace()
        self._began = self._window = 0.0
        self._done = 0.0

    def start(self, trainer: Trainer, now: float) -> None:
        """Training begins."""
        self._began = self._window = now
        self._done = 0.0

    def batch(self, trainer: Trainer, now: float) -> None:
        """A training batch is done."""
        self._done += self._size(trainer)
        span = now - self._window
        if span >= _WINDOW_SECONDS or self._pace.per_second == 0:
            self._pace.tick(trainer.position.batches, now)
        if span >= _WINDOW_SECONDS:
            self.speed.add(trainer.global_step, self._done / span)
            self._window, self._done = now, 0.0
        self.seconds = now - self._began

    def _size(self, trainer: Trainer) -> float:
        if self.unit == "batches":
            return 1.0
        try:
            return trainer.batch_size
        except DataError:
            self.unit, self.speed, self._done = "batches", Thinned(), 0.0
            return 1.0

    def pause(self, now: float) -> None:
        """Validation begins: it counts for the time that is left, not for the speed."""
        self._pace.pause(now)

    def resume(self, now: float) -> None:
        """Training goes on."""
        self._pace.resume(now)
        self._window, self._done = now, 0.0

    @property
    def batches_per_second(self) -> float:
        """Speed of the last windows; 0 if unknown."""
        return self._pace.per_second

    def seconds_left(self, trainer: Trainer) -> float:
        """Time for the rest of the fit; inf if unknown."""
        return self._pace.seconds_left(remaining_batches(trainer), self._began + self.seconds)

    def share(self, trainer: Trainer) -> float | None:
        """Part of the batches that is done; None if unknown."""
        left, done = remaining_batches(trainer), trainer.position.batches
        return None if math.isinf(left) or not done else done / (done + left)
