"""What becomes of a step, an epoch or a fit that is cancelled on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.cancel import Cancel
from minitorch.trainer.saving import Saving

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer


def skip_batch(trainer: Trainer, cancel: Cancel) -> dict[str, Any]:
    """Leaves out the current batch and what it logged.

    What its window has from other batches stays, unless gradients of this one are among it.

    Returns:
        The outputs for `on_train_batch_end`.
    """
    trainer.progress.count_skipped(cancel.reason)
    trainer.metric_log.rewind_batch()
    if trainer.current_batch.differentiated:
        for optimizer in trainer.optimizers:
            optimizer.zero_grad()
        trainer.position.learned = 0
    trainer.precision.close_round(trainer)
    return {}


def skip_update(trainer: Trainer, cancel: Cancel) -> None:
    """Leaves out the update of a window."""
    trainer.progress.count_skipped(cancel.reason)
    trainer.precision.close_round(trainer)


def end_epoch(trainer: Trainer, cancel: Cancel) -> None:
    """Leaves out the batch that is half done, if there is one."""
    if trainer.saving is Saving.NEVER:
        skip_batch(trainer, cancel)
        trainer.saving = Saving.NOW
    else:
        trainer.progress.count_skipped(cancel.reason)
    trainer.phase = "train"


def end_fit(trainer: Trainer, cancel: Cancel) -> None:
    """Takes back the batch that is half done, if there is one, and ends the run."""
    if trainer.saving is Saving.NEVER:
        trainer.progress.close_cut(trainer)
        trainer.batch_was_cut = True
        trainer.precision.close_round(trainer)
    trainer.saving, trainer.phase = Saving.NOW, "train"
    trainer.ending = ("stopped", cancel.reason)
