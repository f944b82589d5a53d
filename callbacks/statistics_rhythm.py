"""When statistics are taken: in every n-th update, and nothing in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.monitor import refuse

if TYPE_CHECKING:
    from minitorch.trainer import Trainer


def check_rhythm(owner: str, every_n_steps: Any) -> None:
    """Raises unless it is None or a number of updates.

    Raises:
        ArgumentError: It is something else.
    """
    if every_n_steps is None:
        return
    if isinstance(every_n_steps, bool) or not isinstance(every_n_steps, int) or every_n_steps < 1:
        refuse(owner, "every_n_steps", every_n_steps, "an integer ≥ 1, or None")


def next_update_is_due(trainer: Trainer, every_n_steps: int | None) -> bool:
    """Whether the update that this batch leads to is one of those that are looked at.

    Args:
        trainer: The Trainer, inside of a step.
        every_n_steps: Updates between two; None for `log_every_n_steps`.
    """
    every = trainer.log_every_n_steps if every_n_steps is None else every_n_steps
    return bool(every) and (trainer.global_step + 1) % every == 0


def log_histogram(trainer: Trainer, tag: str, values: Any, limit: int) -> None:
    """Passes an array to the loggers that know histograms, evenly thinned to at most `limit`."""
    flat = values.detach().reshape(-1)
    step = -(-flat.numel() // limit)
    few = flat[::step] if step > 1 else flat
    trainer.logger_group.log_histogram(tag, few, trainer.global_step + 1)
