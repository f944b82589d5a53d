"""Fresh gradients for every accumulation window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class ZeroGrad(Callback):
    """Clears gradients before the first forward pass of a window.

    Lightning clears after the forward pass; before it, gradients that stray code left behind are
    gone and their memory is free during the forward pass.
    """

    order = Order.PREPARE

    def on_window_start(self, trainer: Trainer, module: TaskModule) -> None:
        position = trainer.position
        for optimizer in trainer.optimizers:
            for call in trainer.events.on_before_zero_grad:
                call(optimizer)
            module.optimizer_zero_grad(position.epoch, position.batch, optimizer)
