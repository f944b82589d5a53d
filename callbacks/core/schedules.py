"""Learning rate schedules, moved by applied updates, finished epochs or fresh metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order, Touched
from minitorch.callbacks.core.standstill import Standstill
from minitorch.callbacks.monitor import Watched

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


_MANUAL = "manual-optimization-traps"


@dataclass(slots=True)
class LRSchedulerConfig:
    """A schedule and when it moves.

    Attributes:
        scheduler: The schedule.
        name: Name for logs.
        interval: "epoch" or "step" (an applied update).
        frequency: Moves every so many intervals.
        monitor: Name of the metric, aggregated over an epoch, that the schedule watches.
        reduce_on_plateau: Whether it takes a metric.
        strict: Whether a missing metric is an error.
        seen: Stamp of the last metric value that it was given.
        optimizer: With several, the one whose updates it counts.
        interval_named: The user named the interval; otherwise the schedule's length may choose it.
    """

    scheduler: Any
    name: str | None = None
    interval: str = "epoch"
    frequency: int = 1
    monitor: str | None = None
    reduce_on_plateau: bool = False
    strict: bool = True
    seen: int = -1
    optimizer: Any = None
    interval_named: bool = False


class Schedules(Callback):
    """Moves the schedules that `configure_optimizers` returned.

    Schedules with interval "step" move right after an applied update (an update that the loss
    scaler skipped does not count), those with interval "epoch" at the end of an epoch, after its
    metrics are final and before checkpoints are written. A schedule that watches a metric moves
    only when the metric has a new value. Under manual optimization the task moves them; one that
    stands still through an epoch and the hooks around it is a warning.
    """

    order = Order.REPORT

    def __init__(self) -> None:
        self._places: list[Any] = []
        self._standstill = Standstill()

    @property
    def writes(self) -> Touched:  # type: ignore[override]
        trainer = self._trainer
        if trainer is None or not trainer.lr_scheduler_configs:
            return {}
        return {"learning rate": ("on_after_optimizer_step", "on_train_epoch_end")}

    def listens(self, event: str) -> bool:
        if event == "on_after_optimizer_step" and self._trainer is not None:
            return any(config.interval == "step" for config in self._trainer.lr_scheduler_configs)
        if event == "on_train_end":
            trainer = self._trainer
            return trainer is not None and not trainer.module.automatic_optimization
        return super().listens(event)

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._places = [config.scheduler.state_dict() for config in trainer.lr_scheduler_configs]
        self._standstill.begin(trainer)

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        """The epoch before is over with all its hooks."""
        self._standstill.begin(trainer)
        if trainer.position.epoch and not module.automatic_optimization:
            self._check_moved(trainer)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        """Manual optimization only."""
        if trainer.position.epoch:
            self._check_moved(trainer)

    def _check_moved(self, trainer: Trainer) -> None:
        if not trainer.position.global_step or trainer.checks.meant(_MANUAL):
            return
        for config, place in zip(trainer.lr_scheduler_configs, self._places, strict=True):
            if repr(config.scheduler.state_dict()) == repr(place):
                trainer.checks.warn(
                    _MANUAL,
                    "configure_optimizers: under manual optimization the task moves its schedules. "
                    f"Got a {type(config.scheduler).__name__} that did not move in an epoch. Call "
                    "self.lr_schedulers().step() in training_step or on_train_epoch_end, or use "
                    "automatic optimization, which moves it; several optimizers are declared "
                    "there by name.",
                )

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        count = optimizer.updates if trainer.named else trainer.position.global_step
        for config in trainer.lr_scheduler_configs:
            if trainer.named and config.optimizer is not optimizer:
                continue
            if config.interval == "step" and not count % config.frequency:
                self.move(trainer, module, config)
                self._standstill.look(optimizer)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._standstill.end(trainer)
        for config in trainer.lr_scheduler_configs:
            used = config.reduce_on_plateau and module.automatic_optimization
            if used and config.strict and trainer.metrics_complete:
                _watched(config).look(trainer)
            if config.interval == "step":
                due = used  # the value of the epoch has come after its last update
            else:
                due = not (trainer.position.epoch + 1) % config.frequency
            if due:
                self.move(trainer, module, config)

    def move(self, trainer: Trainer, module: TaskModule, config: LRSchedulerConfig) -> None:
        """Moves one schedule by one step."""
        if not module.automatic_optimization:
            return
        if not config.reduce_on_plateau:
            module.lr_scheduler_step(config.scheduler, None)
            return
        final = _watched(config).read(trainer)
        if final is not None and final.stamp != config.seen:
            config.seen = final.stamp
            module.lr_scheduler_step(config.scheduler, final.value)


def _watched(config: LRSchedulerConfig) -> Watched:
    return Watched(f"lr_scheduler: monitor={config.monitor!r}", str(config.monitor))
