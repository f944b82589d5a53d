"""LearningRateScheduler: rates from a function of the epoch, as in Keras."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class LearningRateScheduler(Callback):
    """Sets the rate of every parameter group at the start of each epoch.

    Args:
        schedule: `schedule(epoch, rate)` or `schedule(epoch)` gives the new rate; it is called for
            each group with the rate that the group has.
        verbose: Print the rates.
    """

    order = Order.PREPARE
    writes = {"learning rate": "on_train_epoch_start"}

    def __init__(self, schedule: Callable[..., float], verbose: int | bool = 0) -> None:
        self.schedule = schedule
        self.verbose = verbose

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if not callable(self.schedule):
            raise ArgumentError(
                f"LearningRateScheduler: schedule must be a function. Got {self.schedule!r}. "
                "Pass for example lambda epoch, rate: rate * 0.9."
            )

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        epoch = trainer.current_epoch
        takes_rate = _takes_rate(self.schedule)
        rates = []
        for optimizer in trainer.optimizers:
            for group in optimizer.param_groups:
                given = (epoch, float(group["lr"])) if takes_rate else (epoch,)
                group["lr"] = _checked(self.schedule(*given), epoch)
                rates.append(f"{group['lr']:g}")
        if self.verbose:
            trainer.print(f"LearningRateScheduler: epoch {epoch}, rate {', '.join(rates)}")


def _takes_rate(schedule: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(schedule).parameters.values()
    except (TypeError, ValueError):
        return True
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in places if p.default is p.empty]
    return len(needed) > 1 or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def _checked(rate: Any, epoch: int) -> float:
    try:
        value = float(rate)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ArgumentError(
            f"LearningRateScheduler: schedule must return a rate ≥ 0. Got {rate!r} for epoch "
            f"{epoch}. Return a float in every branch."
        )
    return value
