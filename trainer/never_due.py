"""Intervals that are longer than the whole fit: what waits for them would never happen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minitorch.trainer.intervals import has_unit

if TYPE_CHECKING:
    from minitorch.callbacks.core.schedules import LRSchedulerConfig
    from minitorch.trainer.several import Named
    from minitorch.trainer.trainer import Trainer


def check(trainer: Trainer) -> None:
    """Warns before the first batch of a validation, optimizer or schedule that never comes due."""
    if trainer.fast_dev_run or trainer.settings.overfit_batches:
        return
    updates = trainer.estimated_stepping_batches
    if not updates:  # nothing is trained, and that is what was asked for
        return
    _check_validation(trainer, updates)
    for entry in trainer.named.values():
        _check_optimizer(trainer, entry, updates)
    for config in trainer.lr_scheduler_configs:
        _check_schedule(trainer, config, updates)


def _check_validation(trainer: Trainer, updates: float) -> None:
    settings = trainer.settings
    interval, every = settings.val_check_interval, settings.check_val_every_n_epoch
    if not any(trainer.num_val_batches) or (interval in (None, 1.0) and every == 1):
        return
    batches = _batches(trainer, updates)
    if has_unit(interval):
        given, first, total = f"val_check_interval={interval!r}", *_of_trigger(trainer, interval)
    elif every is None:
        given, first, total = f"val_check_interval={interval}", trainer.validations.every, batches
    else:
        given = f"check_val_every_n_epoch={every}"
        given += "" if interval is None else f", val_check_interval={interval}"
        first = (every - 1) * trainer.train_data.count + trainer.validations.every
        total = batches
    if first > total:
        trainer.checks.warn(
            "val-interval-units",
            f"Trainer: a validation must come due within the fit. Got {given} in "
            f"{_length(trainer, updates, batches)}: validation data was passed and is never "
            "looked at. Lower the interval, or leave the validation data out.",
        )


def _of_trigger(trainer: Trainer, interval: Any) -> tuple[float, float]:
    """When a trigger comes due first and how much of its unit the fit has; 0 where unknown."""
    from minitorch.callbacks.triggers import Batches, Epochs, Steps

    updates = trainer.estimated_stepping_batches
    totals = {Steps: updates, Batches: _batches(trainer, updates), Epochs: _epochs(trainer)}
    total = totals.get(type(interval))
    return (0, 0) if total is None else (interval.n, total)


def _check_optimizer(trainer: Trainer, entry: Named, updates: float) -> None:
    if entry.frequency > updates:
        trainer.checks.warn(
            "update-had-no-effect",
            "configure_optimizers: an optimizer must come due within the fit. Got "
            f"frequency={entry.frequency} of {entry.name!r} in {int(updates)} updates: its "
            "parameters stay as they are. Lower the frequency, or freeze them.",
        )


def _check_schedule(trainer: Trainer, config: LRSchedulerConfig, updates: float) -> None:
    total = updates if config.interval == "step" else _epochs(trainer)
    if config.frequency > total:
        trainer.checks.warn(
            "scheduler-unit-mismatch",
            "configure_optimizers: a schedule must move within the fit. Got "
            f"frequency={config.frequency} of {type(config.scheduler).__name__} with "
            f'interval="{config.interval}" in {int(total)} of them: the rate stays as it is. '
            "Lower the frequency, or leave the schedule out.",
        )


def _epochs(trainer: Trainer) -> float:
    return math.inf if trainer.max_epochs == -1 else trainer.max_epochs


def _batches(trainer: Trainer, updates: float) -> float:
    """Batches of the whole fit, at most; with a window that changes by epoch, of its epochs."""
    all_of_them = trainer.train_data.count * _epochs(trainer) if trainer.max_epochs else 0
    if trainer.accumulation.schedule is not None:
        return all_of_them
    return min(all_of_them, updates * trainer.accumulation.batches)


def _length(trainer: Trainer, updates: float, batches: float) -> str:
    parts = {"epochs": _epochs(trainer), "batches": batches, "updates": updates}
    return "a fit of " + ", ".join(f"{n:g} {unit}" for unit, n in parts.items() if n < math.inf)
