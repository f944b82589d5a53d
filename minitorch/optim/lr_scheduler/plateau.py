"""A schedule that follows a metric."""

from __future__ import annotations

import math
from typing import Any

from ...errors import ArgumentError
from ..optimizer import Optimizer
from .base import LRScheduler, check_between, check_count, check_optimizer, per_group


class ReduceLROnPlateau(LRScheduler):
    """Lowers the rate when a metric has stopped getting better.

    Args:
        optimizer: Its groups get the rates.
        mode: `"min"` if smaller is better, `"max"` if larger is.
        factor: The rate is multiplied by it.
        patience: Steps without improvement that are let pass.
        threshold: How much better counts as better.
        threshold_mode: `"rel"` for a part of the best value, `"abs"` for a difference.
        cooldown: Steps after a reduction that do not count.
        min_lr: The smallest rate, or one for each group.
        eps: A smaller change of the rate is left out.

    Attributes:
        best: The best value so far.
        num_bad_epochs: Steps since then.

    Raises:
        ArgumentError: An option is out of range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        self.optimizer = check_optimizer(self, optimizer)
        for name, value, allowed in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if value not in allowed:
                raise ArgumentError(
                    f"ReduceLROnPlateau: {name} must be {allowed[0]!r} or {allowed[1]!r}. "
                    f"Got {value!r}."
                )
        self.factor = check_between(self, "factor", factor, 0, 1)
        if factor == 1:
            raise ArgumentError("ReduceLROnPlateau: factor must be below 1. Got 1.")
        self.mode = mode
        self.patience = check_count(self, "patience", patience, 0)
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = check_count(self, "cooldown", cooldown, 0)
        per_group(self, "min_lr", min_lr, optimizer)
        self.min_lr = min_lr
        self.eps = eps
        self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Takes in the newest value of the metric.

        Args:
            metrics: A number or a one-element tensor.
        """
        current = float(metrics)
        self.last_epoch += 1
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._set(self._reduced())
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    @property
    def in_cooldown(self) -> bool:
        """True while a reduction is so recent that bad steps do not count."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            target = self.best * (1.0 + sign * self.threshold)
        else:
            target = self.best + sign * self.threshold
        return value > target if self.mode == "max" else value < target

    def _reduced(self) -> list[float]:
        rates = []
        lows = per_group(self, "min_lr", self.min_lr, self.optimizer)
        for old, low in zip(self._rates(), lows, strict=True):
            new = max(old * self.factor, low)
            rates.append(new if old - new > self.eps else old)
        return rates
