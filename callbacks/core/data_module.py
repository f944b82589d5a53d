"""The DataModule's part in a run: its hooks come before those of everybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import CheckpointError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class DataModuleHooks(Callback):
    """Calls the hooks of `trainer.datamodule`, and keeps its state in checkpoints.

    Its `setup` and `teardown` come first in their events; a checkpoint holds its state under the
    name of its class and its hyper-parameters under "datamodule_hyper_parameters", as Lightning's.
    """

    order = Order.PREPARE

    def listens(self, event: str) -> bool:
        trainer = self._trainer
        return trainer is not None and trainer.datamodule is not None and super().listens(event)

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        trainer.datamodule.setup(stage)

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        trainer.datamodule.teardown(stage)

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        trainer.datamodule.on_exception(exception)

    def on_save_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        data = trainer.datamodule
        if len(data.hparams):
            checkpoint["datamodule_hyper_parameters"] = dict(data.hparams)
            checkpoint["datamodule_hparams_name"] = data._kept.hparams_name
        if "loops" in checkpoint:
            checkpoint[type(data).__qualname__] = data.state_dict()

    def on_load_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        data = trainer.datamodule
        key = type(data).__qualname__
        if trainer.stage != "fit" or key not in checkpoint:
            return
        try:
            data.load_state_dict(checkpoint[key])
        except Exception as error:
            raise CheckpointError(
                f"{key}.load_state_dict: it must take what state_dict returned when the checkpoint "
                f"was written. It failed with {type(error).__name__}: {error}. Resume with the "
                "same class."
            ) from error
