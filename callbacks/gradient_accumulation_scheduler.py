"""GradientAccumulationScheduler: the number of batches per update by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import refuse
from minitorch.errors import ArgumentError, TrainerError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class GradientAccumulationScheduler(Callback):
    """Changes `accumulate_grad_batches` at the starts of epochs.

    Args:
        scheduling: From the epochs, counted from 0, to the batches per update from then on; 1
            before the first of them.
    """

    order = Order.PREPARE
    writes = {"accumulation": "on_train_epoch_start"}

    def __init__(self, scheduling: dict[int, int]) -> None:
        self.scheduling = scheduling

    def get_accumulate_grad_batches(self, epoch: int) -> int:
        """Batches per update in an epoch."""
        begun = [at for at in self.scheduling if at <= epoch]
        return self.scheduling[max(begun)] if begun else 1

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        who, given = "GradientAccumulationScheduler", self.scheduling
        pairs = given.items() if isinstance(given, dict) else ()
        if not pairs or not all(
            type(at) is int and at >= 0 and type(n) is int and n >= 1 for at, n in pairs
        ):
            refuse(
                who,
                "scheduling",
                given,
                "a dict from epochs ≥ 0 to batches ≥ 1",
                "Write {0: 8, 4: 2} for 8 batches an update, and 2 from epoch 4 on.",
            )
        if not module.automatic_optimization:
            raise TrainerError(
                f"{who}: accumulation works with automatic optimization. Got a module with "
                "automatic_optimization=False. Call step when you mean to in training_step."
            )
        constant = trainer.settings.accumulate_grad_batches
        if constant != 1:
            raise ArgumentError(
                f"{who}: one place says how many batches an update has. Got "
                f"accumulate_grad_batches={constant} as well. Leave one of them out."
            )
        trainer.accumulation.schedule = self.get_accumulate_grad_batches

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        batches = self.get_accumulate_grad_batches(trainer.current_epoch)
        if batches != trainer.accumulation.batches:
            trainer.accumulation.set_batches(trainer, batches)

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            trainer.accumulation.schedule = None
