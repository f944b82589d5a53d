"""Ending a step, an epoch or a fit on purpose: exceptions that carry the reason."""

from __future__ import annotations

from typing import ClassVar

from minitorch.errors import ArgumentError


class Cancel(Exception):
    """Base of the three; the loop catches them where they belong.

    Args:
        reason: One sentence; it is counted in `FitResult.skipped` or becomes `FitResult.reason`.

    Raises:
        ArgumentError: There is no reason.
    """

    where: ClassVar[str] = ""

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str) or not reason:
            raise ArgumentError(
                f"{type(self).__name__}: a cancel says why. Got {reason!r}. Pass a reason, such "
                f'as {type(self).__name__}("the batch is empty").'
            )
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}({self.reason!r}): it is raised {self.where}. Got one "
            "elsewhere, where nothing can be cancelled."
        )


class CancelStep(Cancel):
    """Leaves out the current training batch, or the update if that has begun.

    Raised before the backward pass, the batch adds nothing to its accumulation window, which goes
    on. Raised after it, the gradients that the window has so far are dropped. Raised in
    `on_before_optimizer_step`, the update is left out. `on_train_batch_end` follows in any case,
    for a batch that was left out with empty outputs.
    """

    where = "in training_step, or in an event between on_train_batch_start and the update"


class CancelEpoch(Cancel):
    """Ends the training epoch: the current batch is left out and `on_train_epoch_end` follows.

    Raised in a validation it ends that validation, whose metrics are dropped.
    """

    where = "in an epoch, in a step or in an event of it"


class CancelFit(Cancel):
    """Ends the fit at once: `on_train_end` follows and `fit` returns with status "stopped".

    It does not wait for min_epochs and min_steps. A batch that is half done is taken back, so that
    a resumed run begins with it.
    """

    where = "while a fit trains"
