"""The 1cycle policy."""

from __future__ import annotations

import math
from typing import Any

from ...errors import ArgumentError
from ..optimizer import Optimizer
from .base import LRScheduler, check_between, check_count, check_optimizer, per_group

# For each phase: rate at its start and end, momentum at its start and end.
_UP = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
_DOWN = ("max_lr", "min_lr", "base_momentum", "max_momentum")
_BACK = ("max_lr", "initial_lr", "base_momentum", "max_momentum")
_OUT = ("initial_lr", "min_lr", "max_momentum", "max_momentum")


class OneCycleLR(LRScheduler):
    """Up from `max_lr/div_factor` to `max_lr`, then down far below; momentum the other way round.

    At `total_steps` the last rate stays; a further step raises.

    Args:
        optimizer: Its groups get the rates.
        max_lr: The highest rate, or one for each group.
        total_steps: Length of the cycle in steps.
        epochs: With `steps_per_epoch`, in the place of `total_steps`.
        steps_per_epoch: See `epochs`.
        pct_start: Part of the cycle in which the rate rises.
        anneal_strategy: `"cos"` or `"linear"`.
        cycle_momentum: Move the momentum (or Adam's first beta) as well.
        base_momentum: The momentum at the highest rate, or one for each group.
        max_momentum: The momentum at both ends, or one for each group.
        div_factor: `max_lr` over the first rate.
        final_div_factor: The first rate over the last.
        three_phase: Come back to the first rate, then go down in a third phase.
        last_epoch: As in `LRScheduler`.

    Raises:
        ArgumentError: The length is not given, an option is out of range, the optimizer has no
            momentum to cycle, or a step comes after `total_steps`.

    Source: Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates,
    Smith and Topin, 2018.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        self.total_steps = self._length(total_steps, epochs, steps_per_epoch)
        self.pct_start = check_between(self, "pct_start", pct_start, 0, 1)
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"OneCycleLR: anneal_strategy must be 'cos' or 'linear'. Got {anneal_strategy!r}."
            )
        self.anneal_strategy = anneal_strategy
        self.three_phase = three_phase
        self.cycle_momentum = cycle_momentum
        self.use_beta1 = "betas" in optimizer.defaults
        if cycle_momentum and not self.use_beta1 and "momentum" not in optimizer.defaults:
            raise ArgumentError(
                f"OneCycleLR: {type(optimizer).__name__} has no momentum or betas to cycle. "
                "Pass cycle_momentum=False."
            )
        if last_epoch == -1:
            rates = per_group(self, "max_lr", max_lr, optimizer)
            tops = per_group(self, "max_momentum", max_momentum, optimizer)
            bases = per_group(self, "base_momentum", base_momentum, optimizer)
            for group, rate, top, base in zip(
                optimizer.param_groups, rates, tops, bases, strict=True
            ):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    group["max_momentum"], group["base_momentum"] = top, base
        super().__init__(optimizer, last_epoch)

    def _length(self, total: Any, epochs: Any, per_epoch: Any) -> int:
        if total is not None:
            return check_count(self, "total_steps", total)
        if epochs is None or per_epoch is None:
            raise ArgumentError(
                "OneCycleLR: the length is needed. Give total_steps, or epochs and steps_per_epoch."
            )
        return check_count(self, "epochs", epochs) * check_count(self, "steps_per_epoch", per_epoch)

    def _phase(self, step: int) -> tuple[tuple[str, str, str, str], float]:
        """The phase that `step` lies in, and which part of it has passed."""
        last = self.total_steps - 1.0
        peak = self.pct_start * self.total_steps - 1
        ends = [(_UP, peak), (_DOWN, last)]
        if self.three_phase:
            ends = [(_UP, peak), (_BACK, 2 * self.pct_start * self.total_steps - 2), (_OUT, last)]
        start = 0.0
        for phase, end in ends:
            if step <= end or phase is ends[-1][0]:
                return phase, (step - start) / (end - start) if end != start else 1.0
            start = end
        raise AssertionError("a schedule has a last phase")

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[float]:
        if self.last_epoch > 0:
            self._check_groups(len(self.base_lrs))
        if self.last_epoch > self.total_steps:
            raise ArgumentError(
                f"OneCycleLR: the cycle is over after total_steps. Got step {self.last_epoch} of "
                f"{self.total_steps}. Make it as long as the run; in a Trainer with "
                "self.trainer.estimated_stepping_batches."
            )
        step = min(self.last_epoch, self.total_steps - 1)
        (low, high, m_low, m_high), part = self._phase(step)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[low], group[high], part))
            if self.cycle_momentum:
                momentum = self._between(group[m_low], group[m_high], part)
                if self.use_beta1:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return rates
