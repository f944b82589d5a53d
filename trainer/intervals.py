"""`val_check_interval`: shares, batches, and intervals that carry their unit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minitorch.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from minitorch.callbacks import ValidationTrigger
    from minitorch.trainer.trainer import Trainer

_UNITS = "val-interval-units"


def has_unit(interval: Any) -> bool:
    """Whether it is a trigger, a span of time, or anything else that is no bare number."""
    return interval is not None and not isinstance(interval, int | float)


def batches_between(trainer: Trainer) -> float:
    """Batches from one validation to the next; all of the epoch if a trigger decides.

    Raises:
        ArgumentError: There are more than in an epoch.
        DataError: It is a share of an unknown length.
    """
    settings, count = trainer.settings, trainer.train_data.count
    interval = settings.val_check_interval
    if interval is None or has_unit(interval) or trainer.fast_dev_run:
        return count
    if isinstance(interval, float):
        if interval == 1.0:
            return count
        if math.isinf(count):
            raise DataError(
                f"Trainer: val_check_interval={interval} is a share of an epoch, but the training "
                "loader has no length. Pass a number of batches (an integer)."
            )
        return max(1, int(count * interval))
    if settings.check_val_every_n_epoch is not None and interval > count:
        raise ArgumentError(
            f"Trainer: val_check_interval={interval} must be ≤ the {int(count)} batches of an "
            "epoch. Lower it, or count across epochs with check_val_every_n_epoch=None."
        )
    if trainer.val_data:
        _check_unit(trainer, interval)
    return interval


def _check_unit(trainer: Trainer, interval: int) -> None:
    """Warns of a bare integer that can be read in two ways."""
    count, window = trainer.train_data.count, trainer.settings.accumulate_grad_batches
    if window > 1:
        what = f"accumulate_grad_batches={window}: {interval} batches are {interval / window:.4g} "
        what += "updates"
        meant = f"Batches({interval})", f"Steps({interval})"
    elif interval == 1 and count > 1:
        what = f"{_batches(count)} in an epoch, so that it validates after every one"
        meant = "Batches(1)", "Epochs(1)"
    else:
        return
    trainer.checks.warn(
        _UNITS,
        f"Trainer: an interval between validations carries its unit where a bare number can be "
        f"read in two ways. Got val_check_interval={interval} with {what}. Pass "
        f"val_check_interval={meant[0]} for what it means now, or {meant[1]}; both are in "
        "minitorch.callbacks.",
    )


def _batches(count: float) -> str:
    return "an unknown number of batches" if math.isinf(count) else f"{int(count)} batches"


@dataclass(slots=True)
class Validations:
    """When the validations of a fit are due.

    Attributes:
        every: Batches from one to the next.
        trigger: The callback that decides in place of `every`, or None.
        ran: One is over.
    """

    every: float = math.inf
    trigger: ValidationTrigger | None = None
    ran: bool = False

    def due(self, trainer: Trainer, *, ended: bool = False) -> bool:
        """Whether one is due after the batches that are done.

        Args:
            trainer: The run.
            ended: They are all batches of the epoch.
        """
        position, epochs = trainer.position, trainer.settings.check_val_every_n_epoch
        if not trainer.val_data or position.validated or not position.batch:
            return False
        if self.trigger is not None:
            return self.trigger.due(trainer, ended=ended)
        if epochs is None:
            return position.batches % self.every == 0
        if (position.epoch + 1) % epochs:
            return False
        whole = ended and self.every >= trainer.train_data.count
        return whole or position.batch % self.every == 0
