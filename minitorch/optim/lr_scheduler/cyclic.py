"""Rates that go up and down between two bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError
from ..optimizer import Optimizer
from .base import LRScheduler, check_optimizer, per_group

MODES = ("triangular", "triangular2", "exp_range")


class CyclicLR(LRScheduler):
    """Up from `base_lr` to `max_lr` and down again, over and over; momentum the other way round.

    `lr = base_lr + (max_lr - base_lr)·height·scale`, where `height` goes from 0 to 1 and back, and
    `scale` is 1 ("triangular"), `2^(1-cycle)` ("triangular2"), `gamma^step` ("exp_range") or
    `scale_fn`.

    Args:
        optimizer: Its groups get the rates.
        base_lr: The lowest rate, or one for each group.
        max_lr: The highest rate, or one for each group.
        step_size_up: Steps upwards.
        step_size_down: Steps downwards; default as many.
        mode: "triangular", "triangular2" or "exp_range".
        gamma: Base of the power of "exp_range".
        scale_fn: A function in the place of `mode`.
        scale_mode: Whether `scale_fn` gets the number of the "cycle" or of the step
            ("iterations").
        cycle_momentum: Move the momentum (or Adam's first beta) as well.
        base_momentum: The momentum at the highest rate, or one for each group.
        max_momentum: The momentum at the lowest rate, or one for each group.
        last_epoch: As in `LRScheduler`.

    Raises:
        ArgumentError: An option is out of range, or the optimizer has no momentum to cycle.

    Source: Cyclical Learning Rates for Training Neural Networks, Smith, 2017.
    """

    _not_saved = ("optimizer", "scale_fn")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        if mode not in MODES and scale_fn is None:
            raise ArgumentError(
                f"CyclicLR: mode must be one of {', '.join(MODES)}. Got {mode!r}. "
                "Pass scale_fn for a scale of your own."
            )
        if scale_mode not in ("cycle", "iterations"):
            raise ArgumentError(
                f"CyclicLR: scale_mode must be 'cycle' or 'iterations'. Got {scale_mode!r}."
            )
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        if not (up > 0 and down > 0):
            raise ArgumentError(
                "CyclicLR: step_size_up and step_size_down must be above 0. "
                f"Got {step_size_up!r} and {step_size_down!r}."
            )
        self.total_size, self.step_ratio = up + down, up / (up + down)
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else _SCALE_MODE[mode]
        self.cycle_momentum = cycle_momentum
        self.use_beta1 = "betas" in optimizer.defaults
        self.max_lrs = per_group(self, "max_lr", max_lr, optimizer)
        lows = per_group(self, "base_lr", base_lr, optimizer)
        if cycle_momentum:
            self._start_momenta(optimizer, base_momentum, max_momentum, last_epoch)
        if last_epoch == -1:
            for group, low in zip(optimizer.param_groups, lows, strict=True):
                group["lr"] = group["initial_lr"] = low
        super().__init__(optimizer, last_epoch)
        self.base_lrs = lows

    def _start_momenta(self, optimizer: Optimizer, base: Any, top: Any, last_epoch: int) -> None:
        if not self.use_beta1 and "momentum" not in optimizer.defaults:
            raise ArgumentError(
                f"CyclicLR: {type(optimizer).__name__} has no momentum or betas to cycle. "
                "Pass cycle_momentum=False."
            )
        self.base_momentums = per_group(self, "base_momentum", base, optimizer)
        self.max_momentums = per_group(self, "max_momentum", top, optimizer)
        if last_epoch == -1:
            for group, low, high in zip(
                optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            ):
                group["base_momentum"], group["max_momentum"] = low, high

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return float(self.scale_fn(x))
        if self.mode == "triangular2":
            return float(1 / 2.0 ** (x - 1))
        return float(self.gamma**x) if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        self._check_groups(len(self.base_lrs))
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        rising = x <= self.step_ratio
        height = x / self.step_ratio if rising else (x - 1) / (self.step_ratio - 1)
        height *= self._scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, momenta, strict=True):
                momentum = high - (high - low) * height
                if self.use_beta1:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height for low, high in pairs]


_SCALE_MODE = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}
