"""History: the metrics of every epoch in lists, as `fit` of Keras returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class History(Callback):
    """Keeps for each metric of an epoch its values by epoch.

    Names that an epoch has no new value for, such as those of a validation in every second epoch,
    are left out of that epoch. `FitResult.history` has every logged point by update instead.

    Attributes:
        history: For each name its values.
        epochs: For each name the epochs, counted from 0, that the values belong to.
        epoch: The epochs that are done.
    """

    order = Order.DECIDE
    reads = {"metrics": "on_train_epoch_end"}

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self.history: dict[str, list[float]] = {}
        self.epochs: dict[str, list[int]] = {}
        self.epoch: list[int] = []
        self._seen: dict[str, int] = {}

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._reset()

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        epoch = trainer.current_epoch
        self.epoch.append(epoch)
        for name in trainer.metric_log.names():
            final = trainer.metric_log.finished(name)
            if final is not None and final.stamp != self._seen.get(name):
                self._seen[name] = final.stamp
                self.history.setdefault(name, []).append(final.value)
                self.epochs.setdefault(name, []).append(epoch)

    def state_dict(self) -> dict[str, Any]:
        kept = {"history": self.history, "epochs": self.epochs}
        return {**kept, "epoch": self.epoch, "seen": self._seen}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.history = {name: list(values) for name, values in state_dict["history"].items()}
        self.epochs = {name: list(values) for name, values in state_dict["epochs"].items()}
        self.epoch, self._seen = list(state_dict["epoch"]), dict(state_dict["seen"])
