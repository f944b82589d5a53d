"""New loaders every few epochs, for data that changes while a run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class ReloadLoaders(Callback):
    """Calls the loader hooks again every `reload_dataloaders_every_n_epochs` epochs."""

    order = Order.PREPARE

    def listens(self, event: str) -> bool:
        trainer = self._trainer
        if trainer is None or not trainer.settings.reload_dataloaders_every_n_epochs:
            return False
        return super().listens(event)

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        sources: Any = trainer.sources
        if sources.due:
            sources.reload()
