"""Which callbacks take part in a run: those that were passed, and those of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from minitorch.callbacks.callback import Callback
from minitorch.callbacks.roles import KeepsCheckpoints
from minitorch.errors import ArgumentError
from minitorch.ranks import place
from minitorch.trainer import intervals
from minitorch.trainer.events import as_list

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer


@dataclass(slots=True)
class Asked:
    """Who gave callbacks already: each is asked once, or a later run would lose their state.

    Attributes:
        packages: The installed packages.
        task: The task whose `configure_callbacks` was called last.
    """

    packages: bool = False
    task: TaskModule | None = None


def complete(trainer: Trainer, module: TaskModule, stage: str) -> None:
    """Adds what is missing to the callbacks of the Trainer.

    Raises:
        ArgumentError: There are callbacks that an argument of the Trainer excludes.
    """
    user, own = trainer.user_callbacks, list[Callback]()
    if trainer.asked.task is not module:
        own = as_list(module.configure_callbacks())
        trainer.asked.task = module
    kinds = {type(callback) for callback in own}
    replaced = [type(cb).__name__ for cb in user if type(cb) in kinds]
    if replaced:
        name = type(module).__name__
        trainer.print(f"Trainer: configure_callbacks of {name} replaces {', '.join(replaced)}.")
    user = [callback for callback in user if type(callback) not in kinds]
    has_checkpoint = any(isinstance(callback, KeepsCheckpoints) for callback in [*user, *own])
    if trainer.settings.enable_checkpointing is False and has_checkpoint:
        raise ArgumentError(
            "Trainer: enable_checkpointing=False contradicts a ModelCheckpoint in callbacks. "
            "Got both. Remove one of them."
        )
    own += _plugged_in(trainer, [*user, *own])
    trainer.install([*user, *own, *_asked_for([*user, *own], trainer, stage)])


def _plugged_in(trainer: Trainer, present: list[Callback]) -> list[Callback]:
    """Callbacks from installed packages, made and named once; those passed by hand come first."""
    if trainer.asked.packages:
        return []
    trainer.asked.packages = True
    from minitorch.callbacks import discover_callbacks

    kinds = {type(callback) for callback in present}
    added: list[Callback] = []
    for found in discover_callbacks():
        new = [callback for callback in found.callbacks if type(callback) not in kinds]
        added += new
        trainer.print(f"Trainer: callbacks {found}" + ("" if new else ", already there"))
    return added


def _asked_for(present: list[Callback], trainer: Trainer, stage: str) -> list[Callback]:
    """Callbacks that arguments of the Trainer ask for and that are not there yet."""
    from minitorch import callbacks as box

    s = trainer.settings
    added: list[Callback] = []

    def missing(kind: type) -> bool:
        return not any(isinstance(callback, kind) for callback in present)

    bar = s.enable_progress_bar in (None, True) and place()[0] == 0
    if bar and missing(box.ProgressBar):
        added.append(box.TQDMProgressBar())
    if s.enable_model_summary and stage == "fit" and missing(box.ModelSummary):
        added.append(box.ModelSummary())
    if s.enable_checkpointing and missing(KeepsCheckpoints):
        added.append(box.ModelCheckpoint())
    if s.max_time is not None and missing(box.Timer):
        added.append(box.Timer(duration=s.max_time))
    if stage == "fit" and intervals.has_unit(s.val_check_interval) and not s.fast_dev_run:
        if missing(box.ValidationTrigger):
            added.append(box.ValidationTrigger(s.val_check_interval))
    return added
