"""Gradient accumulation that equals one large batch, whatever sizes its batches have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import Tensor, no_grad
from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import TrainerError
from minitorch.ops.primitive import wrap

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class Accumulation(Callback):
    """One update per `accumulate_grad_batches` batches, weighted by their true sample counts.

    With losses l_i that are means over n_i samples the applied gradient is
    Σ n_i ∇l_i / Σ n_i, also for unequal batches and a short last window. n_i is the count that
    training_step returns: `{"loss": loss, "count": n_tokens}`; without one, what a cross_entropy
    that is returned as it is divides by (targets that count, with their weights), else the batch
    size.
    """

    order = Order.TRANSFORM

    def __init__(self) -> None:
        self._batches: int | None = None
        self._chosen: int | None = None
        self._first_count: Any = 0.0  # numbers, or tensors on a GPU, which nobody reads
        self._total: Any = 0.0

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
        own = None
        if not trainer.counted:
            own = mean_count(loss, scaled=trainer.precision.scaler is not None)
        count: Any = float(trainer.loss_count) if own is None else own
        if trainer.position.window == 0:
            self._first_count, self._total = count, 0.0
        weight = count / self._first_count
        self._total += weight
        return loss if type(weight) is float and weight == 1.0 else loss * weight

    def on_window_end(self, trainer: Trainer, module: TaskModule) -> None:
        if type(self._total) is float and self._total == 1.0:
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


def mean_count(loss: Tensor, *, scaled: bool = False) -> Any:
    """What a loss divides by, if it is a mean that cross_entropy took; else None.

    Args:
        loss: The loss with its graph.
        scaled: It was multiplied by a loss scale.

    Returns:
        A number; on a GPU a tensor, because reading it would wait for the device.
    """
    node: Any = loss.grad_fn
    if scaled and node is not None and node.op.name == "mul":
        node = next((edge for edge in node.edges if edge is not None), None)
    op = getattr(node, "op", None)
    if op is None or op.name != "cross_entropy" or node.params.get("reduction") != "mean":
        return None
    residuals = node.saved[len(op.saves) :]
    if len(residuals) == 4:
        total = residuals[3].sum()
        return float(total) if isinstance(total, np.generic) else wrap(total)
    return float(node.saved[1].size)
