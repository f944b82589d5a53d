"""Fresh gradients for every accumulation window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class ZeroGrad(Callback):
    """Clears gradients before the first forward pass of a window.

    Lightning clears after the forward pass; before it, gradients that stray code left behind are
    gone and their memory is free during the forward pass.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._used: list[Optimizer] = []

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._used = []

    def listens(self, event: str) -> bool:
        trainer = self._trainer
        if event in ("on_train_batch_start", "on_after_optimizer_step", "transform_loss"):
            manual = trainer is not None and not trainer.module.automatic_optimization
            return manual and trainer is not None and trainer.checks.on
        return super().listens(event)

    def on_window_start(self, trainer: Trainer, module: TaskModule) -> None:
        position = trainer.position
        for optimizer in trainer.optimizers:
            for call in trainer.events.on_before_zero_grad:
                call(optimizer)
            module.optimizer_zero_grad(position.epoch, position.batch, optimizer)

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        """Manual optimization only: gradients of an applied update do not reach the next one."""
        self.clear_used()

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        self._used.append(optimizer)

    def clear_used(self) -> None:
        """Clears the gradients that an update has used, before the next backward adds to them."""
        for optimizer in self._used:
            optimizer.zero_grad()
        self._used = []

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        """Manual optimization only, as above."""
        self.clear_used()
        return loss
