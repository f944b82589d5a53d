"""Schedules along a cosine."""

from __future__ import annotations

import math

from ...errors import ArgumentError
from ..optimizer import Optimizer
from .base import Chainable, LRScheduler, check_count


class CosineAnnealingLR(Chainable):
    """Lets the rate fall to `eta_min` along half a cosine.

    `lr = eta_min + (base_lr - eta_min)·(1 + cos(π·step/T_max))/2`. After `T_max` steps the rate
    stays at `eta_min`; in PyTorch it rises again, unnoticed by runs that are longer than planned.
    `CosineAnnealingWarmRestarts` is cyclic.

    Args:
        optimizer: Its groups get the rates.
        T_max: Steps until `eta_min` is reached.
        eta_min: The smallest rate.
        last_epoch: As in `LRScheduler`.

    Source: SGDR: Stochastic Gradient Descent with Warm Restarts, Loshchilov and Hutter, 2017.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if not isinstance(T_max, int | float) or T_max <= 0:
            raise ArgumentError(
                f"CosineAnnealingLR: T_max must be the number of steps, above 0. Got {T_max!r}."
            )
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step, end, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial or step >= end + 1:
            return self._rates()
        if step >= end:
            return [low] * len(self.optimizer.param_groups)
        left = (1 + math.cos(math.pi * step / end)) / (1 + math.cos(math.pi * (step - 1) / end))
        return [left * (rate - low) + low for rate in self._rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosines that begin anew after `T_0`, `T_0·T_mult`, `T_0·T_mult²` … steps.

    Args:
        optimizer: Its groups get the rates.
        T_0: Steps of the first period.
        T_mult: Factor from one period to the next.
        eta_min: The smallest rate.
        last_epoch: As in `LRScheduler`.

    Source: SGDR: Stochastic Gradient Descent with Warm Restarts, Loshchilov and Hutter, 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.T_0 = check_count(self, "T_0", T_0)
        self.T_mult = check_count(self, "T_mult", T_mult)
        self.eta_min = eta_min
        self.T_i = T_0
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        factor = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * factor for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Moves on by one, or to `epoch`.

        Args:
            epoch: A position, also between two steps: `epoch + batch/batches`.

        Raises:
            ArgumentError: It is negative.
        """
        if epoch is None:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
            super().step()
            return
        if epoch < 0:
            raise ArgumentError(f"CosineAnnealingWarmRestarts: epoch must not be negative: {epoch}")
        start, period = 0.0, self.T_0
        while self.T_mult > 1 and epoch >= start + period:
            start += period
            period *= self.T_mult
        self.T_cur = epoch - start if self.T_mult > 1 else epoch % period
        self.T_i = period
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _restart(self) -> None:
        self.T_cur, self.T_i = 0, self.T_0
        super()._restart()
