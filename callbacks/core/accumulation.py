"""Gradient accumulation that equals one large batch, whatever sizes its batches have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import Tensor, no_grad
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core import nested
from minitorch.errors import DataError, TrainerError
from minitorch.ops.primitive import wrap

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer

_FIX = (
    'Return {"loss": loss, "count": n} from training_step: batches are weighted by n, the number '
    "of samples that the loss is a mean of."
)


class Accumulation(Callback):
    """One update per `accumulate_grad_batches` batches, weighted by their true sample counts.

    With losses l_i that are means over n_i samples the applied gradient is
    Σ n_i ∇l_i / Σ n_i, also for unequal batches and a short last window. n_i is the count that
    training_step returns: `{"loss": loss, "count": n_tokens}`; without one, what a cross_entropy
    that is returned as it is divides by (targets that count, with their weights), else the batch
    size. With several optimizers each has its own losses and counts.

    Attributes:
        weight: n_i / n_1 of the loss that was weighted last.
    """

    order = Order.TRANSFORM
    writes = {"gradients": "on_window_end"}

    def __init__(self) -> None:
        self._batches: int | None = None
        self._chosen: int | None = None
        self._split = False
        # By optimizer: its first count and total weight; tensors on a GPU, which nobody reads.
        self._sums: dict[int, tuple[Any, Any]] = {}
        self.weight: Any = 1.0
        self.schedule: Callable[[int], int] | None = None

    @property
    def state_key(self) -> str:
        return "Accumulation"

    @property
    def batches(self) -> int:
        """Batches in a full window."""
        return 1 if self._batches is None else self._batches

    @property
    def at_once(self) -> bool:
        """Every loss is followed by its update: no other batch or part of it adds to it."""
        return self.batches == 1 and not self._split

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if self._batches is None:
            self._batches = trainer.settings.accumulate_grad_batches
        self._split = trainer.settings.on_out_of_memory == "split"

    def updates(self, count: float, epochs: int) -> float:
        """Updates in so many epochs of `count` batches; `schedule` tells the window by epoch."""
        if self.schedule is None:
            return -(-count // self.batches) * epochs
        return sum(-(-count // self.schedule(epoch)) for epoch in range(epochs))

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
        if event in ("on_window_start", "transform_loss", "on_window_end"):
            return not self.at_once
        return super().listens(event)

    def on_window_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._sums = {}

    def transform_loss(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> Tensor:
        own = None
        if not trainer.counted:
            own = mean_count(loss, scaled=trainer.precision.scaler is not None)
        count: Any = self._samples(trainer) if own is None else own
        place = _place(trainer, trainer.active[0])
        first, total = self._sums.get(place, (count, 0.0))
        self.weight = weight = count / first
        self._sums[place] = first, total + weight
        return loss if type(weight) is float and weight == 1.0 else loss * weight

    def _samples(self, trainer: Trainer) -> float:
        """What weighs the loss: the count that was returned, or the samples of the batch."""
        try:
            return float(trainer.loss_count)
        except DataError:
            if self.batches == 1:  # such a batch never runs in parts, so that it is alone
                return 1.0
        batch = trainer.current_batch.data
        return nested.batch_size(batch, who=f"accumulate_grad_batches={self.batches}", fix=_FIX)

    def on_window_end(self, trainer: Trainer, module: TaskModule) -> None:
        for optimizer in trainer.active:
            _, total = self._sums.get(_place(trainer, optimizer), (0.0, 1.0))
            if type(total) is float and total == 1.0:
                continue
            with no_grad():
                for group in optimizer.param_groups:
                    for parameter in group["params"]:
                        if parameter.grad is not None:
                            parameter.grad.div_(total)

    def snapshot(self) -> dict[int, tuple[Any, Any]]:
        """The sums of the window so far, for `restore`."""
        return dict(self._sums)

    def restore(self, snapshot: dict[int, tuple[Any, Any]]) -> None:
        """Goes back to sums that `snapshot` gave."""
        self._sums = dict(snapshot)

    def state_dict(self) -> dict[str, Any]:
        sums = [[place, *both] for place, both in self._sums.items()]
        return {"batches": self.batches, "chosen": self._chosen, "sums": sums}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._sums = {place: (first, total) for place, first, total in state_dict["sums"]}
        self._chosen = state_dict["chosen"]
        if self._chosen is not None:
            self._batches = self._chosen


def _place(trainer: Trainer, optimizer: Optimizer) -> int:
    return trainer.optimizers.index(optimizer) if trainer.named else 0


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
    if op is not None and op.name == "captured":
        count = node.params["mean_count"]
        return float(count.sum()) if isinstance(count, np.ndarray) else count
    if op is None or op.name != "cross_entropy":
        return None
    from minitorch.ops.cross_entropy import divisor

    found = divisor(node, node.saved[len(op.saves) :])
    if found is None or type(found) is float:
        return found
    total = found.sum()
    return float(total) if isinstance(total, np.generic) else wrap(total)
