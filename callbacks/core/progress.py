"""Counting: where the run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class ProgressCounters(Callback):
    """Advances `trainer.position`, before anybody else sees the end of a batch.

    `global_step` counts applied updates, and one batch counts once however many optimizers step.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._counted_batch = -1

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        position = trainer.position
        if position.batches != self._counted_batch:
            self._counted_batch = position.batches
            position.global_step += 1

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        position = trainer.position
        position.batch += 1
        position.batches += 1
        position.validated = False
