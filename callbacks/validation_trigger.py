"""ValidationTrigger: `Trainer(val_check_interval=Steps(100) | Minutes(5))`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.rhythm import Rhythm

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class ValidationTrigger(Callback):
    """Tells the loop that a validation is due; the Trainer adds it for an interval with a unit.

    Args:
        interval: A trigger, or a span of time.
    """

    order = Order.PREPARE

    def __init__(self, interval: Any) -> None:
        self._rhythm = Rhythm("Trainer: val_check_interval", interval)

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._rhythm.reset()
            trainer.validations.trigger = self

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._rhythm.start(trainer)

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_end":
            return self._rhythm.each_batch
        return super().listens(event)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._rhythm.look(trainer, epoch_over=False)

    def due(self, trainer: Trainer, *, ended: bool) -> bool:
        """Whether the loop shall validate now.

        Args:
            trainer: The run.
            ended: The batches of the epoch are done.
        """
        return self._rhythm.look(trainer, epoch_over=True) if ended else self._rhythm.pending

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        if not trainer.sanity_checking and not trainer.interrupted:
            self._rhythm.take()

    @property
    def state_key(self) -> str:
        return "ValidationTrigger"

    def state_dict(self) -> dict[str, Any]:
        return self._rhythm.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._rhythm.load_state_dict(state_dict)
