"""Counting: where the run stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch import random
from minitorch.autograd.mode import state
from minitorch.autograd.node import next_sequence
from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class ProgressCounters(Callback):
    """Advances `trainer.position`, before anybody else sees the end of a batch.

    `global_step` counts applied updates, as the optimizers count them themselves: whoever calls
    `step`, and if nobody does. One batch counts once however many optimizers step.

    Attributes:
        skipped: How many batches, updates and epochs were left out on purpose, by reason.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._before = 0
        self._cuts = False
        self._counted = False
        self._batches = 0
        self._random: dict[str, Any] | None = None
        self.skipped: dict[str, int] = {}

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._cuts = module.automatic_optimization
        state.origin = next_sequence()

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            state.origin, state.horizon = 0, -1

    def open(self, trainer: Trainer, *, batches: int) -> None:
        """Begins a batch, or the update of a window that an epoch's end left open.

        Args:
            batches: Batches that are done once the update is applied: 1, or 0 for an update alone.
        """
        self._before = _updates(trainer)
        self._counted = False
        self._batches = batches
        if trainer.checks.on:
            state.recording = state.recording or 1  # whoever switched it off
            if self._cuts:
                state.horizon = next_sequence()  # older results are constants from here on
        trainer.current_batch.differentiated = False
        if not trainer.position.window:
            self._random = random.state_dict()
            trainer.metric_log.begin_window()
        elif batches:
            trainer.metric_log.begin_batch()

    @property
    def random_before(self) -> dict[str, Any] | None:
        """The random state that the current window began with."""
        return self._random

    def close_cut(self, trainer: Trainer) -> None:
        """Makes the state that an exception left inside of a step one that a run can resume from.

        An update that is in the weights is counted, and its batch is done; otherwise the window
        starts again, with the random numbers and metrics that it started with.
        """
        position = trainer.position
        if self._count(trainer):
            position.window = position.learned = 0
            position.windows += 1
            self._advance(trainer, self._batches)
            return
        position.rewind_window()
        if self._random is not None:
            random.load_state_dict(self._random)
            trainer.metric_log.rewind_window()

    def count_skipped(self, reason: str) -> None:
        """Counts something that was left out."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"skipped": dict(self.skipped)} if self.skipped else {}
        if self._trainer is not None and self._trainer.position.window:
            state["random"] = self._random
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.skipped = dict(state_dict.get("skipped", {}))
        self._random = state_dict.get("random")

    def _count(self, trainer: Trainer) -> bool:
        """Counts the update of this batch, once there is one; whether there is."""
        if not self._counted and _updates(trainer) != self._before:
            self._counted = True
            trainer.position.global_step += 1
        return self._counted

    def _advance(self, trainer: Trainer, batches: int) -> None:
        position = trainer.position
        position.batch += batches
        position.batches += batches
        position.validated = position.validated and not batches

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        self._count(trainer)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._count(trainer)
        self._advance(trainer, 1)


def _updates(trainer: Trainer) -> int:
    total = 0
    for optimizer in trainer.optimizers:  # a comprehension would be one more call
        total += optimizer.updates
    return total
