"""self.log: values of the moment for loggers, exact aggregates for epochs, and their history."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from minitorch import Tensor, ranks
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core import metric_merge, nested
from minitorch.callbacks.core.metric import (
    Flags,
    Metric,
    Scope,
    scalar,
    to_float,
)
from minitorch.callbacks.core.metric_objects import (
    Kept,
    MetricObjects,
    batch_value,
    is_metric,
)
from minitorch.callbacks.core.metric_parts import MetricParts
from minitorch.callbacks.core.metric_reading import MetricReading
from minitorch.callbacks.core.metric_state import (
    Table,
    make_room,
    pack,
    pack_history,
    pack_window,
    unpack,
    unpack_history,
    unpack_window,
)
from minitorch.errors import ArgumentError, DataError, TrainerError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

RESERVED = ("epoch", "step")


class MetricLog(MetricReading, Callback):
    """Keeps everything that `log` was given.

    Step values go to the loggers after every `log_every_n_steps` updates; a run with shorter epochs
    writes its last ones at the end of each epoch. Epoch values are exact aggregates, weighted by
    batch size, and are written before anybody decides or saves. The axis of all of them is
    `trainer.global_step`. A run that ends inside of an epoch also writes what this epoch has so
    far; that stays out of checkpoints, because a resumed run writes the whole epoch.

    Attributes:
        history: For each name the points (global_step, value) of a fit that went to the loggers.
        logged: The last value under each name that went to the loggers.
    """

    order = Order.REPORT
    writes = {"metrics": ("on_train_epoch_end", "on_validation_epoch_end", "on_test_epoch_end")}

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[tuple[int, float]]] = {}
        self.logged: dict[str, float] = {}
        self.suffix = ""
        self.final = False
        self._table: Table = {}
        self._every = 50
        self._flushed = 0
        self._stamp = 0
        self._window = 0
        self._kept: list[tuple[Metric, tuple[Any, ...]]] = []
        self._mark = 0
        self._objects_before: Kept = []
        self._objects_at_mark: Kept = []
        self._partial: dict[str, int] = {}
        self._objects = MetricObjects()
        self._silent = False
        self._parts: MetricParts | None = None

    @property
    def state_key(self) -> str:
        return "MetricLog"

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self.logged, self.suffix = {}, ""
        self._objects.find(module)
        if stage == "fit":
            self.history, self._tables, self._alone = {}, {}, None
            self._partial = {}
        else:
            self._alone = {}  # the fit's own, which a checkpoint may still take, stay aside
        self._silent = trainer.settings.barebones
        every = trainer.settings.log_every_n_steps
        self._every = 50 if every is None else every

    # Writing.

    def enter(self, phase: str, scope: Scope | None) -> None:
        """Switches to the table of a phase and to what may be logged now."""
        self._phase, self.scope, self.final = phase, scope, False
        self._table = self._seen().setdefault(phase, {})

    def put(self, name: str, value: Any, flags: Flags, batch_size: float | None) -> None:
        """Takes one value; `TaskModule.log` explains the arguments."""
        if self._silent:
            return
        if self.suffix:
            name += self.suffix
        metric = self._table.get(name)
        if metric is None or metric.flags != flags or metric.scope is not self.scope:
            metric = self._declare(name, flags)
        source = measured = None
        if type(value) is Tensor:
            value = scalar(name, value)
        elif type(value) is not float:
            if is_metric(value):
                source = value
                value = batch_value(name, source) if metric.on_step else 0.0
            if type(value) is not Tensor:
                measured = getattr(value, "measured_by", None)
            value = scalar(name, value)
        if metric.window != self._window:
            self._keep(metric)
        metric.value = value
        metric.fresh = True
        self._stamp += 1
        metric.stamp = self._stamp
        if self._parts is not None and metric.on_step:
            self._parts.take(metric, batch_size, measured)
        if source is not None:
            self._check_source(metric, source)
            metric.source = source
        if metric.on_epoch:
            if metric.closed:
                metric.closed = False
            if source is None:
                size = self._trainer.current_batch.size  # type: ignore[union-attr]
                if measured is not None or metric.measured is not None:
                    self._measure(metric, measured, value, batch_size)
                elif size and metric.weighs and batch_size is None and type(value) is float:
                    metric.total += value * size  # the usual case, without three calls
                    metric.count += size
                else:
                    weight = self._weight(metric, batch_size)
                    if metric.on_epoch:
                        metric.add(value, weight)
            if self.final and self._phase != "sanity":
                self._write_late(metric)

    def _check_source(self, metric: Metric, source: Any) -> None:
        """Raises where the epoch's aggregate would mix several sources."""
        for other in self._table.values():
            if other is not metric and other.source is source:
                raise TrainerError(
                    f"log({metric.name!r}): a metric object has one name, under which it is "
                    f"computed and reset. Got that of {other.name!r}. Log it once."
                )
        if metric.count or (metric.source is not None and metric.source is not source):
            raise TrainerError(
                f"log({metric.name!r}): one metric object stands behind a name in an epoch. Got "
                "another object or numbers before. Use two names."
            )

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Nothing that is logged or measured in the block is kept."""
        before, self._silent = self._silent, True
        try:
            with self._objects.unchanged():
                yield
        finally:
            self._silent = before

    @contextlib.contextmanager
    def in_parts(self) -> Iterator[MetricParts]:
        """In the block a batch runs in parts; at its end step values become those of the batch."""
        parts = self._parts = MetricParts()
        try:
            yield parts
        finally:
            self._parts = None
        parts.join()

    def begin_window(self) -> None:
        """From here on each training metric is kept as it was before its first new value."""
        self._window += 1
        self._kept, self._mark = [], 0
        kept = self._objects.kept() if self._objects.found else []
        self._objects_before = self._objects_at_mark = kept

    def begin_batch(self) -> None:
        """Begins a further batch of a window, that can be taken back alone."""
        self._window += 1
        self._mark = len(self._kept)
        self._objects_at_mark = self._objects.kept()

    def rewind_window(self) -> None:
        """Takes back what training logged since `begin_window`."""
        self._rewind(0)
        self._objects.rewind(self._objects_before)
        self.begin_window()

    def rewind_batch(self) -> None:
        """Takes back what training logged since `begin_window` or `begin_batch`."""
        self._rewind(self._mark)
        self._objects.rewind(self._objects_at_mark)
        self._window += 1

    def _rewind(self, mark: int) -> None:
        for metric, state in reversed(self._kept[mark:]):
            metric.put_back(state)
        del self._kept[mark:]

    def _keep(self, metric: Metric) -> None:
        metric.window = self._window
        if self._phase == "train":
            self._kept.append((metric, metric.kept()))

    def _weight(self, metric: Metric, batch_size: float | None) -> float:
        if batch_size is not None:
            if batch_size < 1:
                raise ArgumentError(
                    f"log({metric.name!r}): batch_size is the number of samples behind the value "
                    f"and must be ≥ 1. Got {batch_size!r}. Leave the value of an empty batch out."
                )
            return batch_size
        if not metric.weighs:
            return 1.0
        trainer = self._trainer
        assert trainer is not None
        try:
            return trainer.batch_size
        except DataError:
            if not metric.implied:
                who, fix = (
                    f"log({metric.name!r})",
                    "Pass batch_size=n, the samples behind the value.",
                )
                return nested.batch_size(trainer.current_batch.data, who=who, fix=fix)
            metric.only_asked()
            return 0.0

    def _measure(self, metric: Metric, measured: Any, value: Any, batch_size: Any) -> None:
        """Adds a result of a metric: in steps by what it was computed from, else as a number."""
        if metric.reduce != "mean" or not metric.scope.steps:
            metric.add(value, self._weight(metric, batch_size))
        elif measured is None or metric.count:
            raise TrainerError(
                f"log({metric.name!r}): results of a metric have no mean over batches, so the name "
                "keeps their counts, and other numbers cannot be added. Got both in one epoch. "
                "Use two names."
            )
        else:
            metric.measure(measured[0], whole=measured[1])

    def _declare(self, name: str, flags: Flags) -> Metric:
        if self.scope is None:
            raise TrainerError(
                f"log({name!r}): values are logged in the steps, batches and epochs of training, "
                "validation and testing. Got a call outside of them. Move it into such a step or "
                "hook."
            )
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"log: a name is a non-empty string. Got {name!r}.")
        if name in RESERVED:
            raise ArgumentError(
                f"log({name!r}): loggers get the epoch with all values, and trainer.global_step is "
                f"their axis. Got a metric of this name. Rename it, for example to 'my_{name}'."
            )
        metric = Metric(name, flags, self.scope)
        known = self._table.get(name)
        if known is None:
            make_room(metric, self._seen(), self._table)
            self._table[name] = metric
            return metric
        if known.resolved != metric.resolved:
            raise TrainerError(
                f"log({name!r}): a name keeps its flags (prog_bar, logger, on_step, on_epoch, "
                f"reduce_fx). Got {metric.resolved} after {known.resolved}. Use two names."
            )
        known.flags, known.scope = flags, metric.scope
        return known

    # Events.

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._epoch_start = trainer.position.global_step
        self._objects.find(module)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.position.global_step
        if step != self._flushed and self._every and step % self._every == 0:
            self._write(trainer, self._last_steps(step), step)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        step, last = trainer.position.global_step, dict[str, float]()
        if self._flushed <= self._epoch_start and step != self._flushed and self._every:
            last = self._last_steps(step)
        self._close(trainer, last)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        if not trainer.position.batch:
            return
        values: dict[str, float] = {}
        for metric in self._tables.get("train", {}).values():
            if metric.on_step and metric.fresh and metric.to_logger and self._every:
                values[metric.step_key] = to_float(metric.value)
            aggregate = metric.aggregate() if metric.on_epoch and metric.to_logger else None
            if aggregate is not None:
                values[metric.epoch_key] = aggregate
        self._partial = {name: len(self.history.get(name, ())) for name in values}
        self._write(trainer, values, trainer.position.global_step)

    def on_validation_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._close(trainer)

    def on_test_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._close(trainer)

    def begin_epoch(self) -> None:
        """Empties the aggregates of the current phase."""
        self.final = False
        for metric in self._table.values():
            metric.reset()

    def end_loader(self) -> None:
        """Reads the metric objects that one of several loaders fed; the next may feed them anew."""
        if not self.suffix:
            return
        for metric in self._table.values():
            value = metric.aggregate() if metric.source is not None else None
            if metric.source is not None:
                metric.reset()
            if value is not None and metric.on_epoch:
                metric.add(value, 1.0)

    def _last_steps(self, step: int) -> dict[str, float]:
        """The step values that were not written yet."""
        self._flushed = step
        values = {}
        for metric in self._table.values():
            if metric.on_step and metric.fresh and metric.to_logger:
                values[metric.step_key] = to_float(metric.value)
                metric.fresh = False
        return values

    def _close(self, trainer: Trainer, values: dict[str, float] | None = None) -> None:
        values = {} if values is None else values
        self.final = True
        if ranks.in_group():
            metric_merge.merge(self._table, self._objects, self._packed, unpack)
        step = trainer.position.global_step
        for metric in self._table.values():
            value = metric.close(step) if metric.on_epoch else None
            if metric.source is not None:  # it was logged for steps only, or not updated
                metric.reset()
            if value is not None and metric.to_logger:
                values[metric.epoch_key] = value
        self._write(trainer, values, step)

    def _write_late(self, metric: Metric) -> None:
        trainer = self._trainer
        assert trainer is not None
        if ranks.in_group():
            metric_merge.refuse_late(metric)
        step = trainer.position.global_step
        value = metric.close(step)
        if metric.to_logger and value is not None:
            self._write(trainer, {metric.epoch_key: value}, step)

    def _write(self, trainer: Trainer, values: dict[str, float], step: int) -> None:
        if not values or self._phase == "sanity":
            return
        if self._alone is None:
            for name, value in values.items():
                self.history.setdefault(name, []).append((step, value))
        self.logged.update(values)
        trainer.logger_group.log_metrics({**values, "epoch": trainer.position.epoch}, step)

    def drop(self, phase: str) -> None:
        """Forgets a phase."""
        self._seen().pop(phase, None)

    # State.

    def state_dict(self) -> dict[str, Any]:
        tables = {
            phase: {name: self._packed(metric) for name, metric in table.items()}
            for phase, table in self._tables.items()
            if phase != "sanity"
        }
        return {
            "tables": tables,
            "history": pack_history(self.history, self._partial),
            "flushed": self._flushed,
            "epoch_start": self._epoch_start,
            "stamp": self._stamp,
            "objects": self._objects.state_dict(),
            **self._open_window(),
        }

    def _open_window(self) -> dict[str, Any]:
        if self._trainer is None or not self._trainer.position.window:
            return {}
        objects = self._objects.state_of(self._objects_before)
        return {"window": {"metrics": pack_window(self._kept), "objects": objects}}

    def _packed(self, metric: Metric) -> dict[str, Any]:
        path = None if metric.source is None else self._objects.path_of(metric.source)
        return {**pack(metric), "source": path}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._tables = {
            phase: {name: unpack(name, state) for name, state in table.items()}
            for phase, table in state_dict["tables"].items()
        }
        self._table = self._tables.get(self._phase, {})
        if self._trainer is not None:
            self._objects.find(self._trainer.module)
        self._objects.load_state_dict(state_dict.get("objects", {}))
        for phase, table in state_dict["tables"].items():
            for name, state in table.items():
                self._tables[phase][name].source = self._objects.found.get(state.get("source"))
        self.history = unpack_history(state_dict["history"])
        self._flushed = state_dict["flushed"]
        self._epoch_start = state_dict["epoch_start"]
        self._stamp = state_dict["stamp"]
        if "window" in state_dict:
            before = state_dict["window"]
            self._kept = unpack_window(before["metrics"], self._tables["train"])
            self._objects_before = self._objects.kept_as(before["objects"])
