"""Triggers that count one unit: epochs, updates, batches, samples, time; and named points."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.triggers.trigger import Trigger
from minitorch.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from minitorch.trainer import Trainer

_ALMOST = 1e-9  # multiples of a fraction such as 0.1 must not come one batch late


class Interval(Trigger):
    """Comes due whenever a count passes a multiple of `n`."""

    rule = "a number > 0"

    def __init__(self, n: float) -> None:
        self.n = n
        self.reset()

    def count(self, trainer: Trainer, *, epoch_over: bool) -> float:
        """How much has passed since training began."""
        raise NotImplementedError(f"{type(self).__name__} must override count()")

    def check(self) -> None:
        n = self.n
        whole = self.rule.startswith("an integer")
        number = isinstance(n, int if whole else int | float) and not isinstance(n, bool)
        if not number or not math.isfinite(n) or n <= 0:
            name = type(self).__name__
            raise ArgumentError(f"{name}: the interval must be {self.rule}. Got {name}({n!r}).")

    def reset(self) -> None:
        self._seen: int | None = None

    def start(self, trainer: Trainer) -> None:
        if self._seen is None:
            self._seen = self._multiple(trainer, epoch_over=False)

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        before, now = self._seen, self._multiple(trainer, epoch_over=epoch_over)
        self._seen = now
        return before is not None and now > before

    def _multiple(self, trainer: Trainer, *, epoch_over: bool) -> int:
        return int(self.count(trainer, epoch_over=epoch_over) / self.n + _ALMOST)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self._seen}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._seen = state_dict["seen"]

    def __repr__(self) -> str:
        short = f"{self.n:g}"
        return f"{type(self).__name__}({short if float(short) == self.n else repr(self.n)})"


class Epochs(Interval):
    """Every `n` epochs; a fraction needs a loader with a length."""

    @property
    def each_batch(self) -> bool:  # type: ignore[override]
        """Fractions come due inside of epochs."""
        return self.n != int(self.n)

    def start(self, trainer: Trainer) -> None:
        if self.each_batch:
            _need_length(self, trainer)
        super().start(trainer)

    def count(self, trainer: Trainer, *, epoch_over: bool) -> float:
        position, batches = trainer.position, trainer.num_training_batches
        if epoch_over:
            return position.epoch + 1
        return position.epoch + min(position.batch, batches - 0.5) / batches


class Steps(Interval):
    """Every `n` updates of the optimizer."""

    rule = "an integer ≥ 1"

    def count(self, trainer: Trainer, *, epoch_over: bool) -> float:
        return trainer.global_step


class Batches(Interval):
    """Every `n` batches, counted across epochs; with accumulation several make one update."""

    rule = "an integer ≥ 1"

    def count(self, trainer: Trainer, *, epoch_over: bool) -> float:
        return trainer.position.batches


class Samples(Interval):
    """Every `n` samples, counted from the batches themselves."""

    def reset(self) -> None:
        super().reset()
        self._samples, self._batches = 0.0, -1

    def start(self, trainer: Trainer) -> None:
        if self._batches == -1:
            self._batches = trainer.position.batches
        super().start(trainer)

    def count(self, trainer: Trainer, *, epoch_over: bool) -> float:
        if self._batches != trainer.position.batches:
            self._batches = trainer.position.batches
            self._samples += trainer.batch_size
        return self._samples

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "samples": self._samples, "batches": self._batches}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._samples, self._batches = state_dict["samples"], state_dict["batches"]


class Seconds(Interval):
    """Every `n` seconds of the fit, validation included; those before a resume count."""

    unit_seconds = 1.0

    def reset(self) -> None:
        super().reset()
        self._before, self._began = 0.0, math.nan

    def start(self, trainer: Trainer) -> None:
        self._began = time.monotonic()
        super().start(trainer)

    def count(self, trainer: Trainer, *, epoch_over: bool) -> float:
        return self._elapsed() / self.unit_seconds

    def _elapsed(self) -> float:
        running = 0.0 if math.isnan(self._began) else time.monotonic() - self._began
        return self._before + running

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "elapsed": self._elapsed()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._before = state_dict["elapsed"]


class Minutes(Seconds):
    """Every `n` minutes of the fit."""

    unit_seconds = 60.0


class Hours(Seconds):
    """Every `n` hours of the fit."""

    unit_seconds = 3600.0


class At(Trigger):
    """At points that are named: `At([1000, 5000])` updates, `At([0.5, 3], Epochs)`.

    Args:
        points: Numbers of the unit, in any order.
        unit: Steps, Batches, Samples, Epochs, Seconds, Minutes or Hours.
    """

    def __init__(self, points: Sequence[float], unit: type[Interval] = Steps) -> None:
        self.points = points
        self.unit = unit
        self._clock = unit(1)
        self.reset()

    @property
    def each_batch(self) -> bool:  # type: ignore[override]
        """Whole epochs come due at their ends only."""
        return self.unit is not Epochs or any(point != int(point) for point in self.points)

    def check(self) -> None:
        numbers = isinstance(self.points, list | tuple) and all(
            isinstance(p, int | float) and not isinstance(p, bool) and p > 0 for p in self.points
        )
        if not numbers or not self.points:
            raise ArgumentError(
                f"At: points must be a list of numbers > 0. Got {self.points!r}. "
                "Write At([100, 1000], Steps)."
            )

    def reset(self) -> None:
        self._clock.reset()
        self._passed: int | None = None

    def start(self, trainer: Trainer) -> None:
        if self.unit is Epochs and self.each_batch:
            _need_length(self, trainer)
        self._clock.start(trainer)
        if self._passed is None:
            self._passed = self._count(trainer, epoch_over=False)

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        before, now = self._passed, self._count(trainer, epoch_over=epoch_over)
        self._passed = now
        return before is not None and now > before

    def _count(self, trainer: Trainer, *, epoch_over: bool) -> int:
        now = self._clock.count(trainer, epoch_over=epoch_over) + _ALMOST
        return sum(point <= now for point in self.points)

    def state_dict(self) -> dict[str, Any]:
        return {"passed": self._passed, "clock": self._clock.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._passed = state_dict["passed"]
        self._clock.load_state_dict(state_dict["clock"])

    def __repr__(self) -> str:
        return f"At({list(self.points)}, {self.unit.__name__})"


class When(Trigger):
    """Whenever a function of the trainer says so: `When(lambda trainer: ...)`."""

    def __init__(self, function: Callable[[Trainer], Any]) -> None:
        self.function = function

    def check(self) -> None:
        if not callable(self.function):
            raise ArgumentError(
                f"When: a function of the trainer is needed. Got {self.function!r}. "
                "Write When(lambda trainer: trainer.global_step > 10)."
            )

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        return bool(self.function(trainer))

    def __repr__(self) -> str:
        return f"When({getattr(self.function, '__name__', 'function')})"


def _need_length(trigger: Trigger, trainer: Trainer) -> None:
    if math.isinf(trainer.num_training_batches):
        raise DataError(
            f"{trigger!r}: a part of an epoch needs a training loader with a length. Got one "
            "without. Use Batches, Samples or Minutes."
        )
