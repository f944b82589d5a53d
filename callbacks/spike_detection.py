"""SpikeDetection: ends a run at a spike of the loss and notes the batches to leave out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch import backend
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.spikes import Spikes
from minitorch.errors import DivergenceError

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.trainer import TaskModule, Trainer


class SpikeDetection(Callback):
    """Raises at a spike of the loss, before its update, and writes which batches to leave out.

    The file is a JSON list: this batch and the one before it, whose update may have done the
    damage, as numbers within the epoch. `Rollback` goes on by itself instead. The loss is read in
    every batch, which waits for a GPU.

    Args:
        mode: "min" if a lower loss is better, "max" if a higher one is.
        window: Losses in the mean that each loss is compared with.
        warmup: Batches before the first that is judged.
        atol: Least absolute distance from the mean that is a spike, or None.
        rtol: Least distance in units of the mean, or None.
        exclude_batches_path: File or folder; default "skip_batches.json" in default_root_dir.
        finite_only: Whether a loss that is not finite counts, which ends a run in any case.
    """

    order = Order.PREPARE

    def __init__(
        self,
        mode: str = "min",
        window: int = 10,
        warmup: int = 1,
        atol: float | None = None,
        rtol: float | None = 2.0,
        exclude_batches_path: str | os.PathLike[str] | None = None,
        finite_only: bool = True,
    ) -> None:
        self.exclude_batches_path = exclude_batches_path
        self.bad_batches: list[int] = []
        self._spikes = Spikes(
            "SpikeDetection",
            mode=mode,
            window=window,
            warmup=warmup,
            atol=atol,
            rtol=rtol,
            finite_only=finite_only,
        )

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._spikes.check()
            self._spikes.reset()
            self.bad_batches = []

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        self._spikes.begin_batch()

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        value = float(backend.to_host(loss._array).item())
        if self._spikes.is_spike(value):
            raise spike(trainer, value, self._spikes.mean)
        return loss

    def on_divergence(
        self, trainer: Trainer, module: TaskModule, error: DivergenceError
    ) -> Callable[[], None] | None:
        self.bad_batches += [index for index in (error.batch - 1, error.batch) if index >= 0]
        from minitorch.io.atomic import replacing

        path = os.fspath(self.exclude_batches_path or trainer.default_root_dir)
        if not path.endswith(".json"):
            path = os.path.join(path, "skip_batches.json")
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with replacing(path) as file:
            file.write(json.dumps(self.bad_batches, indent=4).encode())
        error.add_note(f"SpikeDetection wrote the batches to leave out to {path}")
        return None

    def state_dict(self) -> dict[str, Any]:
        return {"bad_batches": list(self.bad_batches), "spikes": self._spikes.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.bad_batches = list(state_dict["bad_batches"])
        self._spikes.load_state_dict(state_dict["spikes"])


def spike(trainer: Trainer, value: float, mean: float) -> DivergenceError:
    """The error of a loss that left its course."""
    position = trainer.position
    return DivergenceError(
        f"training_step: the loss must not jump. Got {value:.6g} at epoch {position.epoch}, batch "
        f"{position.batch} (after {position.global_step} updates), where the mean of the last ones "
        f"is {mean:.6g}. The update was not applied. Lower the learning rate, clip gradients, or "
        "look at this batch and the one before."
    )
