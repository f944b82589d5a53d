"""What a Trainer knows about its run: read by callbacks, kept apart from the loop."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from minitorch.callbacks.callback import Callback
from minitorch.callbacks.core import (
    CORE,
    Accumulation,
    DevicePlacement,
    FiniteGradients,
    GradientClipping,
    LoaderWait,
    MetricLog,
    MicroBatches,
    Precision,
    ProgressCounters,
    nested,
)
from minitorch.callbacks.core.schedules import LRSchedulerConfig
from minitorch.callbacks.roles import KeepsCheckpoints, ShowsProgress, StopsEarly
from minitorch.errors import ArgumentError
from minitorch.ranks import place
from minitorch.trainer import checkpoint
from minitorch.trainer.arguments import Settings
from minitorch.trainer.current_batch import CurrentBatch
from minitorch.trainer.events import Calls, Events, as_list
from minitorch.trainer.interrupt import Interrupt
from minitorch.trainer.intervals import Validations
from minitorch.trainer.lightning_names import LightningNames
from minitorch.trainer.loaders import Batches
from minitorch.trainer.logger_group import LoggerGroup, make_loggers
from minitorch.trainer.position import Position
from minitorch.trainer.result import Ending
from minitorch.trainer.resuming import Resuming
from minitorch.trainer.saving import Saving
from minitorch.trainer.taking_part import Asked
from minitorch.trainer.task import overrides
from minitorch.trainer.view import View

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer.checks import Checks
    from minitorch.trainer.plan import StepPlan
    from minitorch.trainer.profiler import Profiler
    from minitorch.trainer.several import Named
    from minitorch.trainer.sources import EvalSources, FitSources
    from minitorch.trainer.task import TaskModule

Kind = TypeVar("Kind", bound=Callback)


class Status(LightningNames, Resuming, View):
    """State of a run. Final class: `Trainer`.

    Attributes:
        settings: The arguments as given.
        callbacks: All callbacks in the order in which they run, the core ones too.
        position: Where the fit stands.
        events: The calls of each event.
        optimizers: What configure_optimizers returned, in its order.
        named: Those that were declared by name, with their cadence; empty for a single one.
        active: Those that the loss or update of this moment belongs to.
        lr_scheduler_configs: The schedules and when they move.
        is_last_batch: The current training batch is the epoch's last one.
        train_data, val_data: The loaders of the fit.
        datamodule: The DataModule of the current or last run, or None.
        sources: Where the loaders of the fit come from.
        batch_was_cut: An exception ended the run inside of a step, so that the loader has given a
            batch that does not count.
        training_randomness: Random state of training while an evaluation has its own.
        attached: The module of the current or last run, or None; `module` raises in its place.
        running: The entry point that is at work ("fit", "validate" …), or None.
        fitted: `fit` was called.
        asked: Who has given callbacks already.
        plan: What the loop calls in a step of this fit.
        current_batch: The batch of this moment.
        validations: When validations are due.
        ending: How the fit ended, as status and reason, or None while it goes on.
        saving: What becomes of a call of `save_checkpoint` now.
        to_save: The files of calls that wait for the end of an event.
        saved_data: Where the training loader stood in the checkpoint that the fit started from.
        progress, precision, accumulation, clipping, finite, metric_log, …: Core callbacks by kind.
    """

    events: Events
    train_data: Batches
    sources: FitSources | EvalSources
    checks: Checks
    first_loss = 0.0
    resumed = False
    fitted = _should_stop = False
    plan: StepPlan

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.position = Position()
        self.optimizers: list[Optimizer] = []
        self.named: dict[str, Named] = {}
        self.active: list[Optimizer] = []
        self.lr_scheduler_configs: list[LRSchedulerConfig] = []
        self.val_data: list[Batches] = []
        self.eval_data: list[Batches] = []
        self.datamodule: Any = None
        self.is_last_batch = False
        self.phase: str | None = None
        self.stage: str | None = None
        self.interrupt = Interrupt()
        self.profiler: Profiler | None = None
        self.attached: TaskModule | None = None
        self.running: str | None = None
        self.asked = Asked()
        self.current_batch = CurrentBatch()
        self.validations = Validations()
        self._stop_reason = ""
        self._stop_status: Ending = "stopped"
        self.ending: tuple[str, str] | None = None
        self.saved_data: Any = None
        self.batch_was_cut = False
        self.training_randomness: dict[str, Any] | None = None
        self.saving = Saving.NOW
        self.to_save: list[Any] = []
        self.install(as_list(settings.callbacks))
        folder = os.fspath(settings.default_root_dir or os.getcwd())
        self.default_root_dir = folder
        silent = settings.fast_dev_run or place()[0]
        loggers = [] if silent else make_loggers(settings.logger, folder)
        self.logger_group = LoggerGroup(loggers)

    # Callbacks.

    def install(self, user: list[Callback]) -> None:
        """Sorts the user's callbacks and the core ones; a subclass replaces its kind.

        Raises:
            ArgumentError: One is no callback, or two are of the same core kind.
        """
        self.user_callbacks = user
        core: list[Callback] = []
        rest = list(user)
        for kind in CORE:
            own = [callback for callback in user if isinstance(callback, kind)]
            if len(own) > 1:
                raise ArgumentError(
                    f"Trainer: one callback of the kind {kind.__name__} takes part. "
                    f"Got {len(own)}. Keep one."
                )
            core.append(own[0] if own else self._current(kind) or kind())
            rest = [callback for callback in rest if callback not in own]
        places = [(callback.order, index) for index, callback in enumerate([*core, *rest])]
        both = [*core, *rest]
        self.callbacks = [both[index] for _, index in sorted(places)]
        self.progress = self._kind(ProgressCounters)
        self.precision = self._kind(Precision)
        self.accumulation = self._kind(Accumulation)
        self.micro_batches = self._kind(MicroBatches)
        self.clipping = self._kind(GradientClipping)
        self.finite = self._kind(FiniteGradients)
        self.metric_log = self._kind(MetricLog)
        self.placement = self._kind(DevicePlacement)
        self.loader_wait = self._kind(LoaderWait)

    def _current(self, kind: type[Callback]) -> Callback | None:
        return next((cb for cb in getattr(self, "callbacks", []) if type(cb) is kind), None)

    def _kind(self, kind: type[Kind]) -> Kind:
        return next(callback for callback in self.callbacks if isinstance(callback, kind))

    def rewire(self) -> None:
        """Builds the table of events again, after callbacks or what they listen to changed."""
        taking_part = self.callbacks
        if self.settings.fast_dev_run:
            passive = ("DECIDE", "PERSIST")
            taking_part = [
                cb for cb in taking_part if isinstance(cb, CORE) or cb.order.name not in passive
            ]
        self.events = Events(taking_part, self, self.module, self.profiler)

    def fire(self, calls: Calls, *args: Any) -> None:
        """Runs an event between two batches, and then writes the checkpoints asked for in it."""
        self.saving = Saving.LATER
        for call in calls:
            call(*args)
        self.saving = Saving.NOW
        self._write_waiting()

    def save_now(self, *args: Any) -> None:
        """Stands before the callbacks of Order.PERSIST: what they save is complete."""
        self.saving = Saving.NOW

    def _write_waiting(self) -> None:
        waiting, self.to_save = self.to_save, []
        for path in waiting:
            checkpoint.write(self, path, weights_only=False)

    @property
    def checkpoint_callbacks(self) -> list[Any]:
        """Callbacks that keep checkpoints: `minitorch.callbacks.roles.KeepsCheckpoints`."""
        return [callback for callback in self.callbacks if isinstance(callback, KeepsCheckpoints)]

    @property
    def checkpoint_callback(self) -> Any:
        """The first of them, or None."""
        return next(iter(self.checkpoint_callbacks), None)

    @property
    def early_stopping_callbacks(self) -> list[Any]:
        """Callbacks that stop a run: `minitorch.callbacks.roles.StopsEarly`."""
        return [callback for callback in self.callbacks if isinstance(callback, StopsEarly)]

    @property
    def early_stopping_callback(self) -> Any:
        """The first of them, or None."""
        return next(iter(self.early_stopping_callbacks), None)

    @property
    def progress_bar_callback(self) -> Any:
        """The first callback that shows progress (`roles.ShowsProgress`), or None."""
        return next((cb for cb in self.callbacks if isinstance(cb, ShowsProgress)), None)

    def print(self, *values: Any, **options: Any) -> None:
        """Prints, above the progress bar if there is one; in a group only the first process."""
        if place()[0]:
            return
        bar = self.progress_bar_callback
        write = print if bar is None else bar.print
        write(*values, **options)

    def overrides(self, name: str) -> bool:
        """Whether the module's class defines this method itself."""
        return overrides(self.module, name)

    # Limits.

    @property
    def fast_dev_run(self) -> bool:
        """Only a few batches of everything run."""
        return bool(self.settings.fast_dev_run)

    @property
    def max_epochs(self) -> int:
        """Epochs in total; -1 is endless."""
        s = self.settings
        if s.fast_dev_run:
            return 1
        if s.max_epochs is not None:
            return s.max_epochs
        return 1000 if s.max_steps == -1 and s.max_time is None else -1

    @property
    def max_steps(self) -> int:
        """Optimizer updates in total; -1 is no limit."""
        return int(self.settings.fast_dev_run) or self.settings.max_steps

    @property
    def min_epochs(self) -> int:
        """A stop by a callback waits for this epoch."""
        return self.settings.min_epochs or 0

    @property
    def min_steps(self) -> int:
        """A stop by a callback waits for this update."""
        return self.settings.min_steps or 0

    @property
    def should_stop(self) -> bool:
        """The run ends at the next border between batches; settable, `stop` also tells why."""
        return self._should_stop

    @should_stop.setter
    def should_stop(self, value: bool) -> None:
        self._should_stop = bool(value)

    def stop(self, reason: str, *, status: Ending = "stopped") -> None:
        """Ends the run at the next border between batches.

        Args:
            reason: One sentence for `FitResult.reason`.
            status: For `FitResult.status`. "failed" does not wait for min_epochs and min_steps,
                and no later call replaces it.
        """
        self._should_stop = True
        if self._stop_status != "failed":
            self._stop_reason, self._stop_status = reason, status

    def _ends(self) -> bool:
        position = self.position
        if self.ending is not None:
            return True
        if self.interrupt.requested:
            self.ending = ("interrupted", self.interrupt.reason)
        elif self.max_steps != -1 and position.global_step >= self.max_steps:
            self.ending = ("completed", f"max_steps={self.max_steps} reached")
        elif self._should_stop and self._may_stop():
            reason = self._stop_reason or "a callback set trainer.should_stop"
            self.ending = (self._stop_status, reason)
        return self.ending is not None

    def _may_stop(self) -> bool:
        position = self.position
        if self._stop_status == "failed":
            return True
        return position.epoch >= self.min_epochs and position.global_step >= self.min_steps

    def ends_at_epoch(self) -> bool:
        """Whether no further epoch begins; `ending` says why."""
        if self.max_epochs != -1 and self.position.epoch >= self.max_epochs and self.ending is None:
            self.ending = ("completed", f"max_epochs={self.max_epochs} reached")
        return self._ends()

    # The batch of this moment.

    def see_batch(self, batch: Any) -> None:
        """Takes a training batch, or a part of one, as that of this moment."""
        current = self.current_batch
        current.data, current.size, current.count = batch, None, None
        self.is_last_batch = self.position.batch + 1 >= self.train_data.count

    @property
    def batch_size(self) -> float:
        """Samples in the current batch, read from its tensors."""
        current = self.current_batch
        if current.size is None:
            current.size = float(nested.batch_size(current.data))
        return current.size

    @property
    def loss_count(self) -> float:
        """What the loss is a mean of: the count that training_step returned, or the batch size."""
        count = self.current_batch.count
        return self.batch_size if count is None else count

    @property
    def counted(self) -> bool:
        """training_step returned the count itself."""
        return self.current_batch.count is not None

    # Data.

    @property
    def estimated_stepping_batches(self) -> float:
        """Optimizer updates of the whole fit; inf if unknown. For schedules that need a length."""
        count = self.train_data.count
        limit: float = float("inf") if self.max_steps == -1 else self.max_steps
        if self.max_epochs == -1 or count == float("inf"):
            return limit
        return min(self.accumulation.updates(count, self.max_epochs), limit)

    def data_state(self) -> Any:
        """Position of the training loader, for checkpoints; None to count batches instead."""
        if self.batch_was_cut or not self.position.batch:
            return None
        return self.train_data.state_dict()
