"""What the loop calls in the steps of a fit, decided once when the fit starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minitorch import float64
from minitorch.callbacks.core.pulling import ARGUMENT, BatchIterator
from minitorch.trainer import several
from minitorch.trainer.task import positional_count

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer


@dataclass(slots=True)
class StepPlan:
    """The functions of a step, and how closely its losses are looked at.

    Attributes:
        own_step: The task's `training_step(batch, batch_idx)`.
        step: What runs in its place: recorded with `compile=True`, timed with a profiler.
        learn: `learn(module, batch, batch_idx)`, forward and backward of one batch.
        backward: `backward(loss, **options)` of the task.
        update: `update(trainer, module, optimizer, loss)`; whether it was applied.
        next: `next(batches, end)`, the next batch.
        check_every: On a GPU losses and gradients are checked in every so many batches.
        refused_width: NumPy's dtype that a loss must not have, or None.
    """

    own_step: Callable[[Any, int], Any]
    step: Callable[[Any, int], Any]
    learn: Callable[[TaskModule, Any, int], Any]
    backward: Callable[..., Any]
    update: Callable[..., bool]
    next: Callable[..., Any]
    check_every: int
    refused_width: Any


def make(trainer: Trainer, learn_once: Callable[[TaskModule, Any, int], Any]) -> StepPlan:
    """The plan of a fit whose task, optimizers and callbacks are complete.

    Args:
        trainer: The run.
        learn_once: Forward and backward of a task with one loss.
    """
    module = trainer.module
    own: Callable[..., Any] = module.training_step
    step = own
    if trainer.settings.compile:
        from minitorch.trainer.captured import captured_step

        step = captured_step(trainer)
    calls: dict[str, Callable[..., Any]] = {
        "training_step": step,
        "backward": module.backward,
        "optimizer_step": trainer.precision.optimizer_step,
        "next batch": trainer.loader_wait.measured(trainer, next),
    }
    if trainer.profiler is not None:
        calls = {name: trainer.profiler.timed(name, call) for name, call in calls.items()}
    take = calls["next batch"]
    if ARGUMENT in inspect.signature(own).parameters:
        take = BatchIterator(trainer, take).next
    learn = several.learner(trainer) if trainer.named else learn_once
    if trainer.settings.on_out_of_memory == "split":
        learn = trainer.micro_batches.around(trainer, learn)
    indexed = positional_count(own, 2) == 2
    exact = trainer.precision.input_dtype is float64 or trainer.checks.meant("float64-creep")
    return StepPlan(
        own_step=own if indexed else _without_index(own),
        step=calls["training_step"] if indexed else _without_index(calls["training_step"]),
        learn=learn,
        backward=calls["backward"],
        update=calls["optimizer_step"],
        next=take,
        check_every=(1 if trainer.finite.every_batch else trainer.log_every_n_steps) or 50,
        refused_width=None if exact else float64.numpy,
    )


def _without_index(step: Callable[[Any], Any]) -> Callable[[Any, int], Any]:
    return lambda batch, batch_idx: step(batch)
