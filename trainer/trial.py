"""Short trial runs that leave no trace: the way in which the Tuner looks for settings."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from minitorch import no_grad
from minitorch.autograd.mode import state as mode
from minitorch.callbacks.callback import Callback
from minitorch.callbacks.core import CORE
from minitorch.callbacks.core.metric_objects import Kept, MetricObjects
from minitorch.trainer.attributes import Attributes
from minitorch.trainer.seeding import isolate_rng
from minitorch.trainer.taking_part import Asked

if TYPE_CHECKING:
    from minitorch.trainer.result import FitResult
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

_MODE = "recording anomaly noting quiet snapshots on_empty_cache meant origin horizon".split()
_BUILDING = ("prepare_data", "setup", "teardown", "configure_model", "configure_callbacks")


class Untouched:
    """Everything that a trial run may move in its objects, and the way back.

    Args:
        owners: Modules and data modules.
    """

    def __init__(self, *owners: Any) -> None:
        self._attributes: list[Attributes] = []
        self._values: list[tuple[Any, Any, Any]] = []
        self._tasks: list[tuple[Any, dict[str, Any]]] = []
        self._metrics: list[Kept] = []
        for owner in owners:
            if owner is None:
                continue
            for part in owner.modules() if hasattr(owner, "modules") else (owner,):
                self._attributes.append(Attributes(part))
            kept = owner._kept
            self._tasks.append((kept, dict(vars(kept))))
            self._tasks.append((kept.hparams, dict(kept.hparams)))
            if hasattr(owner, "parameters"):
                metrics = MetricObjects()
                metrics.find(owner)
                self._metrics.append(metrics.kept())
                for tensor in (*owner.parameters(), *owner.buffers()):
                    self._values.append((tensor, tensor.detach().clone(), tensor.grad))

    def restore(self) -> None:
        """Puts everything back."""
        for attributes in self._attributes:
            attributes.restore()
        for kept_metrics in self._metrics:
            MetricObjects.rewind(kept_metrics)
        for held, values in self._tasks:
            target = held if hasattr(held, "clear") else vars(held)
            target.clear()
            target.update(values)
        with no_grad():
            for tensor, value, grad in self._values:
                tensor.copy_(value)
                tensor.grad = grad


@contextlib.contextmanager
def untouched(*owners: Any) -> Iterator[None]:
    """A block after which modules, random numbers and modes are as they were before."""
    before = Untouched(*owners)
    modes = {name: getattr(mode, name) for name in _MODE}
    with isolate_rng():
        try:
            yield
        finally:
            before.restore()
            for name, value in modes.items():
                setattr(mode, name, value)


def trial(trainer: Trainer, module: TaskModule, *callbacks: Callback, **changed: Any) -> Trainer:
    """A Trainer with the settings of another, for one short run without output.

    Args:
        trainer: Its precision, accumulation, clipping, limits and own core callbacks are taken.
        module: The task.
        callbacks: Those of the trial.
        changed: Settings that differ.
    """
    from minitorch.trainer.trainer import Trainer

    core = [copy.deepcopy(cb) for cb in trainer.user_callbacks if isinstance(cb, CORE)]
    quiet = {
        "callbacks": [*core, *callbacks],
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
        "max_epochs": 1_000_000,  # not -1: schedules are made for the number of epochs
        "min_epochs": None,
        "min_steps": None,
        "max_time": None,
        "limit_val_batches": 0,
        "overfit_batches": 0.0,
        "fast_dev_run": False,
        "num_sanity_val_steps": 0,
        "val_check_interval": None,
        "check_val_every_n_epoch": 1,
        "log_every_n_steps": 0,
        "profiler": None,
        "checks": "off",
        "on_out_of_memory": "raise",
        "reload_dataloaders_every_n_epochs": 0,
    }
    settings = replace(trainer.settings, **{**quiet, **changed})
    made = Trainer(**{name: getattr(settings, name) for name in settings.names()})
    made.asked = Asked(packages=True, task=module)  # no callbacks from elsewhere
    return made


@contextlib.contextmanager
def built(*owners: Any) -> Iterator[None]:
    """A block in which runs do not build what a run around them has built already."""
    present = [owner for owner in owners if owner is not None]
    own = [{name: vars(o)[name] for name in _BUILDING if name in vars(o)} for o in present]
    for owner in present:
        vars(owner).update(dict.fromkeys(_BUILDING, _nothing))
    try:
        yield
    finally:
        for owner, before in zip(present, own, strict=True):
            for name in _BUILDING:
                vars(owner).pop(name, None)
            vars(owner).update(before)


def _nothing(*args: Any) -> Any:
    return []


def pass_on_interrupt(result: FitResult) -> None:
    """Ctrl-C in a trial ends what the trial is for.

    Raises:
        KeyboardInterrupt: It was pressed.
    """
    if result.status == "interrupted":
        raise KeyboardInterrupt
