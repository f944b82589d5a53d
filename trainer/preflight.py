"""What can be seen before the first batch: schedules, groups, lengths, overlapping splits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import backend
from minitorch.errors import DataError

if TYPE_CHECKING:
    from minitorch.callbacks.core.schedules import LRSchedulerConfig
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

_LENGTHS = ("total_steps", "T_max", "total_iters")
_UNIT = "scheduler-unit-mismatch"
_FEW_SAMPLES = 50
_MOST_SAMPLES = 20_000
_OVERLAP = 0.05


def choose_unit(trainer: Trainer, config: LRSchedulerConfig, *, named: bool) -> None:
    """Lets a schedule move in the unit that its length counts, or refuses it.

    Args:
        trainer: The run that is about to start.
        config: The schedule.
        named: The user named the interval.
    """
    if trainer.checks.meant(_UNIT):
        return
    length = next(
        (n for n in (getattr(config.scheduler, name, None) for name in _LENGTHS) if n), None
    )
    epochs, updates = trainer.max_epochs, trainer.estimated_stepping_batches
    for entry in trainer.named.values():
        if entry.optimizer is config.optimizer:
            updates //= entry.frequency
    if not isinstance(length, int) or epochs == -1 or math.isinf(updates) or updates < 2 * epochs:
        return
    batches = trainer.train_data.count * epochs
    kind = type(config.scheduler).__name__
    if length == epochs != updates:
        fits = "epoch"
    elif length == updates:
        fits = "step"
    elif length == batches:
        trainer.checks.error(
            _UNIT,
            f"configure_optimizers: a schedule counts updates. Got a {kind} of length {length}, "
            f"which is the number of batches; with accumulate_grad_batches="
            f"{trainer.accumulation.batches} there are {int(updates)} updates. Use "
            "self.trainer.estimated_stepping_batches.",
        )
        return
    else:
        return
    if not named:
        config.interval = fits
    elif fits != config.interval:
        trainer.checks.error(
            _UNIT,
            f"configure_optimizers: length and interval of a schedule count the same thing. Got a "
            f'{kind} of length {length} with interval="{config.interval}" in a run of {epochs} '
            f'epochs and {int(updates)} updates. Did you mean interval="{fits}"?',
        )


def check_decay(trainer: Trainer) -> None:
    """Warns of a weight decay, larger than the default, on biases and scales."""
    check = "weight-decay-on-everything"
    if trainer.checks.meant(check):
        return
    for optimizer in trainer.optimizers:
        usual = _default_decay(type(optimizer))
        for group in optimizer.param_groups:
            decay = group.get("weight_decay", 0.0)
            names = [n for n, p in zip(group["names"], group["params"], strict=True) if p.ndim < 2]
            if decay <= usual or not names or len(group["names"]) - len(names) < 2:
                continue
            trainer.checks.warn(
                check,
                f"configure_optimizers: weight decay is for matrices. Got weight_decay={decay} on "
                f"vectors as well: {', '.join(names[:4])}. Make two groups: "
                '{"params": [p for p in self.parameters() if p.ndim > 1]} and {"params": '
                '[p for p in self.parameters() if p.ndim < 2], "weight_decay": 0.0}.',
            )


def _default_decay(kind: type) -> float:
    import inspect

    found = inspect.signature(kind.__init__).parameters.get("weight_decay")  # type: ignore[misc]
    default = getattr(found, "default", 0.0)
    return default if isinstance(default, float | int) else 0.0


def check_last_batch(trainer: Trainer, module: TaskModule) -> None:
    """No batch of one sample for a batch normalisation that trains."""
    loader: Any = trainer.train_data.loader
    size = getattr(loader, "batch_size", None)
    sampler = getattr(loader, "batch_sampler", None)
    if not size or size < 2 or sampler is None or getattr(loader, "drop_last", False):
        return
    if getattr(loader, "spread_last", False) or trainer.train_data.count < len(sampler):
        return
    try:
        samples = len(loader.sampler)
    except TypeError:
        return
    if samples % size != 1:
        return
    from minitorch.nn.normalization import _BatchNorm
    from minitorch.trainer.phase import is_frozen

    for name, part in module.named_modules():
        trains = part.training and any(p.requires_grad for p in part.parameters())
        if isinstance(part, _BatchNorm) and trains and not is_frozen(part):
            trainer.checks.error(
                "batch-of-one-batchnorm",
                f"train_dataloaders: batch normalisation ({name}) needs two samples or more. "
                f"Got {samples} samples in batches of {size}, so that the last batch of every "
                "epoch has one. Use DataLoader(..., spread_last=True) or drop_last=True, or "
                "another batch_size.",
                DataError,
            )


def check_splits(trainer: Trainer, module: TaskModule) -> None:
    """Warns if samples of the validation data are in the training data."""
    check = "data-leakage"
    if trainer.settings.overfit_batches or trainer.fast_dev_run or trainer.checks.meant(check):
        return
    train = _samples(trainer.train_data.loader)
    if train is None or not trainer.val_data:
        return
    known = set(_hashes(train))
    for batches in trainer.val_data:
        held_out = _samples(batches.loader)
        if held_out is None or len(held_out[0]) < _FEW_SAMPLES:
            continue
        hashes = list(_hashes(held_out))
        same = sum(h in known for h in hashes)
        if same > _OVERLAP * len(hashes):
            trainer.checks.warn(
                check,
                f"val_dataloaders: held-out samples must not be in the training data. Got "
                f"{same} of {len(hashes)} that are the same, inputs and targets. Split with "
                "minitorch.data.random_split, before anything is copied or augmented.",
            )


def _samples(loader: Any) -> list[np.ndarray] | None:
    """The arrays of a loader's dataset, or None where they cannot be had without reading it."""
    from minitorch.data import DataLoader, Subset, TensorDataset

    if type(loader) is not DataLoader:
        return None
    dataset: Any = loader.dataset
    indices = None
    if isinstance(dataset, Subset):
        dataset, indices = dataset.dataset, np.asarray(dataset.indices)
    if not isinstance(dataset, TensorDataset):
        return None
    tensors = [getattr(t, "_array", t) for t in dataset.tensors]
    if any(backend.device_of(a).type != "cpu" for a in tensors) or len(tensors[0]) == 0:
        return None
    return [a if indices is None else a[indices] for a in tensors]


def _hashes(columns: list[np.ndarray]) -> Iterator[int]:
    """One number for each sample (of at most 20 000, spread over all)."""
    step = max(1, len(columns[0]) // _MOST_SAMPLES)
    rows = [np.ascontiguousarray(column[::step]) for column in columns]
    for i in range(len(rows[0])):
        yield hash(tuple([row[i].tobytes() for row in rows]))
