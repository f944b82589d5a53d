"""Schedules that multiply the rate: by steps, exponentially, linearly, by a power."""

from __future__ import annotations

from collections.abc import Iterable

from ..optimizer import Optimizer
from .base import Chainable, check_between, check_count


class StepLR(Chainable):
    """Multiplies the rate by `gamma` every `step_size` steps.

    Args:
        optimizer: Its groups get the rates.
        step_size: Steps between two changes.
        gamma: The factor.
        last_epoch: As in `LRScheduler`.
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = check_count(self, "step_size", step_size)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]


class MultiStepLR(Chainable):
    """Multiplies the rate by `gamma` at each milestone.

    Args:
        optimizer: Its groups get the rates.
        milestones: Steps at which it happens; one that stands twice counts twice.
        gamma: The factor.
        last_epoch: As in `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = sorted(check_count(self, "milestones", m, 0) for m in milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _first_factor(self) -> float:
        return float(self.gamma ** self.milestones.count(0))

    def get_lr(self) -> list[float]:
        count = self.milestones.count(self.last_epoch)
        if not count:
            return self._rates()
        return [rate * self.gamma**count for rate in self._rates()]


class ExponentialLR(Chainable):
    """Multiplies the rate by `gamma` at every step.

    Args:
        optimizer: Its groups get the rates.
        gamma: The factor.
        last_epoch: As in `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]


class ConstantLR(Chainable):
    """A smaller constant rate for the first `total_iters` steps.

    Args:
        optimizer: Its groups get the rates.
        factor: The factor at first, above 0 and at most 1.
        total_iters: When the full rate sets in.
        last_epoch: As in `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.factor = check_between(self, "factor", factor, 0, 1, open_low=True)
        self.total_iters = check_count(self, "total_iters", total_iters, 0)
        super().__init__(optimizer, last_epoch)

    def _first_factor(self) -> float:
        return self.factor if self.total_iters else 1.0

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self._first_factor() for rate in self._rates()]
        if self.last_epoch != self.total_iters:
            return self._rates()
        return [rate * (1.0 / self.factor) for rate in self._rates()]


class LinearLR(Chainable):
    """A factor that goes linearly from `start_factor` to `end_factor`, then stays.

    Args:
        optimizer: Its groups get the rates.
        start_factor: The factor at step 0, above 0 and at most 1.
        end_factor: The factor from step `total_iters` on, from 0 to 1.
        total_iters: How many steps the way takes.
        last_epoch: As in `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = check_between(self, "start_factor", start_factor, 0, 1, open_low=True)
        self.end_factor = check_between(self, "end_factor", end_factor, 0, 1)
        self.total_iters = check_count(self, "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def _first_factor(self) -> float:
        return self.start_factor

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in self._rates()]


class PolynomialLR(Chainable):
    """Lets the rate fall to 0 as `(1 - step/total_iters)^power`.

    Args:
        optimizer: Its groups get the rates.
        total_iters: When 0 is reached; the rate stays there.
        power: The exponent.
        last_epoch: As in `LRScheduler`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = check_count(self, "total_iters", total_iters)
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._rates()
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [rate * (left / before) ** self.power for rate in self._rates()]
