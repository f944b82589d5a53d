"""A linear rise, then a cosine."""

from __future__ import annotations

import math

from ...errors import ArgumentError
from ..optimizer import Optimizer
from .base import LRScheduler, check_between, check_count


class WarmupCosine(LRScheduler):
    """A linear rise to the base rate in `warmup_steps`, then half a cosine down to `min_factor`.

    `lr = base_lr·(step + 1)/warmup_steps` below `warmup_steps`, then
    `base_lr·(min_factor + (1 - min_factor)·(1 + cos(π·part))/2)` with the `part` of the remaining
    steps that has passed. After `total_steps` the rate stays. PyTorch needs `SequentialLR` of
    `LinearLR` and `CosineAnnealingLR` for it.

    Args:
        optimizer: Its groups get the rates.
        warmup_steps: Steps of the rise; 0 for none. The first rate is above 0.
        total_steps: Step at which `min_factor` is reached.
        min_factor: The last rate as a part of the base rate.
        last_epoch: As in `LRScheduler`.

    Raises:
        ArgumentError: The rise does not end before `total_steps`, or an option is out of range.

    Source: SGDR: Stochastic Gradient Descent with Warm Restarts, Loshchilov and Hutter, 2017.

    >>> optimizer = mt.optim.SGD([mt.nn.Parameter(mt.ones(1))], lr=1.0)
    >>> schedule = mt.optim.lr_scheduler.WarmupCosine(optimizer, warmup_steps=2, total_steps=4)
    >>> rates = []
    >>> for _ in range(6):
    ...     optimizer.step()
    ...     rates += [round(rate, 3) for rate in schedule.get_last_lr()]
    ...     schedule.step()
    >>> rates
    [0.5, 1.0, 1.0, 0.5, 0.0, 0.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        warmup_steps: int,
        total_steps: int,
        min_factor: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        self.warmup_steps = check_count(self, "warmup_steps", warmup_steps, 0)
        self.total_steps = check_count(self, "total_steps", total_steps)
        self.min_factor = check_between(self, "min_factor", min_factor, 0, 1)
        if warmup_steps >= total_steps:
            raise ArgumentError(
                "WarmupCosine: the rise must end before total_steps. "
                f"Got warmup_steps={warmup_steps} and total_steps={total_steps}."
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step, rise = self.last_epoch, self.warmup_steps
        if step < rise:
            factor = (step + 1) / rise
        else:
            part = min(1.0, (step - rise) / (self.total_steps - rise))
            factor = self.min_factor + (1 - self.min_factor) * (1 + math.cos(math.pi * part)) / 2
        return [base * factor for base in self.base_lrs]
