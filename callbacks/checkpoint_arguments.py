"""Which arguments of a ModelCheckpoint fit together."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.monitor import refuse
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.callbacks.model_checkpoint import ModelCheckpoint

TRIGGERS = ("every", "every_n_train_steps", "every_n_epochs", "train_time_interval")
_WHO = "ModelCheckpoint"


def check(callback: ModelCheckpoint) -> None:
    """Raises ArgumentError for what cannot work."""
    k, last = callback.save_top_k, callback.save_last
    if not _integer(k) or k < -1:
        refuse(_WHO, "save_top_k", k, "an integer ≥ 0, or -1 for all")
    if callback.monitor is None and k > 1:
        refuse(_WHO, "save_top_k", k, "1, 0 or -1 without a monitor", "Name a metric as monitor.")
    if last is not None and not isinstance(last, bool) and last != "link":
        refuse(_WHO, "save_last", last, 'True, "link", False or None')
    for name, least in (("every_n_train_steps", 1), ("every_n_epochs", 0)):
        value = getattr(callback, name)
        if value is not None and (not _integer(value) or value < least):
            refuse(_WHO, name, value, f"an integer ≥ {least} or None")
    interval = callback.train_time_interval
    if interval is not None and not (isinstance(interval, timedelta) and interval > timedelta()):
        refuse(_WHO, "train_time_interval", interval, "a timedelta > 0 or None")
    given = [name for name in TRIGGERS if getattr(callback, name)]
    if len(given) > 1:
        raise ArgumentError(
            f"{_WHO}: one argument of {', '.join(TRIGGERS)} sets the rhythm. "
            f"Got {' and '.join(given)}. Keep one, or pass several ModelCheckpoints."
        )


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
