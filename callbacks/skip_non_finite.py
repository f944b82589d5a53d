"""Leaves out batches and updates that are not finite, a few at most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.cancel import CancelStep
from minitorch.callbacks.core.finite import FiniteGradients
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer

_LOSS = "the loss was not finite"
_GRADIENTS = "the gradients were not finite"


class SkipNonFinite(FiniteGradients):
    """Goes on where a run would end: a batch with a NaN or infinite loss is left out, and so is an
    update with such gradients.

    `FitResult.skipped` counts them, and a warning at the end tells how many there were. On a GPU
    every batch waits for its loss and every update for its gradients. Under "16-mixed" the loss
    scaler skips updates by itself; they do not count here.

    Args:
        max_in_a_row: More of them without an applied update in between end the run.

    Raises:
        ArgumentError: It is not an integer ≥ 1; raised when the run starts.
    """

    every_batch = True

    def __init__(self, max_in_a_row: int = 10) -> None:
        super().__init__()
        self.max_in_a_row = max_in_a_row
        self._in_a_row = 0

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if type(self.max_in_a_row) is not int or self.max_in_a_row < 1:
            raise ArgumentError(
                "SkipNonFinite: max_in_a_row must be an integer ≥ 1. "
                f"Got {self.max_in_a_row!r}. Leave the callback out to end at the first."
            )

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        super().on_setup_end(trainer, module, stage)
        self._active = trainer.precision.scaler is None

    def on_bad_loss(self, trainer: Trainer, text: str) -> None:
        self._skip(trainer, _LOSS, text)

    def on_bad_gradients(self, trainer: Trainer, text: str) -> None:
        self._skip(trainer, _GRADIENTS, text)

    def _skip(self, trainer: Trainer, reason: str, text: str) -> None:
        self._in_a_row += 1
        if self._in_a_row > self.max_in_a_row:
            super().on_bad_loss(
                trainer,
                f"{text} SkipNonFinite left out {self.max_in_a_row} in a row before this one.",
            )
        raise CancelStep(reason)

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        self._in_a_row = 0

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        skipped = trainer.progress.skipped
        parts = [f"{skipped[r]} because {r}" for r in (_LOSS, _GRADIENTS) if r in skipped]
        if parts:
            trainer.checks.found.append(
                f"SkipNonFinite: left out {' and '.join(parts)}, of {trainer.position.batches} "
                "batches."
            )

    def state_dict(self) -> dict[str, Any]:
        return {"in_a_row": self._in_a_row}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._in_a_row = state_dict["in_a_row"]
