"""Gradient accumulation that equals one large batch, whatever sizes its batches have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch import Tensor, no_grad
from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import TrainerError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class Accumulation(Callback):
    """One update per `accumulate_grad_batches` batches, weighted by their true sample counts.

    With losses l_i that are means over n_i samples the applied gradient is
    Σ n_i ∇l_i / Σ n_i, also for unequal batches and a short last window. n_i is the batch size, or
    the count that training_step returns: `{"loss": loss, "count": n_tokens}`.
    """

    order = Order.TRANSFORM

    def __init__(self) -> None:
        self._batches: int | None = None
        self._chosen: int | None = None
        self._first_count = 0.0
        self._total = 0.0

    @property
    def state_key(self) -> str:
        return "Accumulation"

    @property
    def batches(self) -> int:
        """Batches in a full window."""
        return 1 if self._batches is None else self._batches

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if self._batches is None:
            self._batches = trainer.settings.accumulate_grad_batches

    def set_batches(self, trainer: Trainer, batches: int) -> None:
        """Changes the window from the next one on, also in runs resumed from here.

        Raises:
            TrainerError: A window is half filled.
        """
        if trainer.position.window:
            raise TrainerError(
                "accumulation: the window may change between updates only. Got a change after "
                f"{trainer.position.window} of {self.batches} batches. Do it in "
                "on_train_epoch_start."
            )
        self._batches = self._chosen = batches
        trainer.rewire()

    def listens(self, event: str) -> bool:
        if event in ("transform_loss", "on_window_end"):
            return self.batches > 1
        return super().listens(event)

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        count = float(trainer.loss_count)
        if trainer.position.window == 0:
            self._first_count, self._total = count, 0.0
        weight = count / self._first_count
        self._total += weight
        return loss if weight == 1.0 else loss * weight

    def on_window_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self._total == 1.0:
            return
        with no_grad():
            for parameter in module.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(self._total)

    def state_dict(self) -> dict[str, Any]:
        window = {"first": self._first_count, "total": self._total}
        return {"batches": self.batches, "chosen": self._chosen, **window}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._first_count, self._total = state_dict["first"], state_dict["total"]
        self._chosen = state_dict.get("chosen")
        if self._chosen is not None:
            self._batches = self._chosen
