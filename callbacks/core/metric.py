"""One logged name: its flags, its latest value and the exact aggregate of the epoch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minitorch import Tensor, backend
from minitorch.errors import ArgumentError, TrainerError, describe


class Final(NamedTuple):
    """The aggregate of a finished epoch.

    Attributes:
        value: The aggregate.
        step: Updates applied when the epoch ended: the weights that the value belongs to.
        stamp: Changes with every new value.
    """

    value: float
    step: int
    stamp: int


class Scope(NamedTuple):
    """A part of a run, and what `log` does in it by default.

    Attributes:
        where: Name in messages.
        on_step: Default of on_step.
        on_epoch: Default of on_epoch.
        steps: Whether it is a part with batches.
        updates: Whether updates happen, which are the axis of step values.
        weighted: Whether an epoch mean is weighted by the batch.
    """

    where: str
    on_step: bool
    on_epoch: bool
    steps: bool
    updates: bool
    weighted: bool


TRAIN_STEP = Scope("a training batch", True, False, True, True, True)
TRAIN_EPOCH = Scope("a training epoch's start or end", False, True, False, True, False)
EVAL_STEP = Scope("an evaluation batch", False, True, True, False, True)
EVAL_EPOCH = Scope("an evaluation's start or end", False, True, False, False, False)
SCOPES = {scope.where: scope for scope in (TRAIN_STEP, TRAIN_EPOCH, EVAL_STEP, EVAL_EPOCH)}

REDUCTIONS = ("mean", "sum", "max", "min")
COLLAPSE_AT = 256

Flags = tuple[Any, ...]


class Metric:
    """A logged name.

    Sums are Python floats (float64) on the CPU. On a GPU values wait as device scalars, so that
    logging never waits for the device; they are read together at the end of the epoch.

    Attributes:
        source: The metric object that was logged, if one was: it holds the epoch's aggregate.
        measured: The batches behind results of metrics that were logged: their results have no
            mean, but their counts have a sum.
        implied: Nobody asked for the epoch's aggregate; it has the name `epoch_key`, and the plain
            name is that of the latest value.
    """

    __slots__ = (
        "closed",
        "count",
        "epoch_key",
        "epoch_value",
        "flags",
        "fresh",
        "implied",
        "measured",
        "name",
        "on_epoch",
        "on_step",
        "pending",
        "reduce",
        "scope",
        "source",
        "stamp",
        "step",
        "step_key",
        "to_bar",
        "to_logger",
        "total",
        "value",
        "waiting",
        "weighs",
        "window",
    )

    def __init__(self, name: str, flags: Flags, scope: Scope) -> None:
        to_bar, to_logger, on_step, on_epoch, reduce = flags
        self.name = name
        self.flags = flags
        self.scope = scope
        self.on_step: bool = scope.on_step if on_step is None else on_step
        self.on_epoch: bool = scope.on_epoch if on_epoch is None else on_epoch
        self.to_bar: bool = to_bar
        self.to_logger: bool = to_logger
        self.reduce = _reduction(name, reduce)
        self._check(name)
        both = self.on_step and self.on_epoch
        self.implied = self.on_step and on_epoch is None and scope.updates and scope.steps
        self.on_epoch = self.on_epoch or self.implied
        self.step_key = f"{name}_step" if both else name
        self.epoch_key = f"{name}_epoch" if both or self.implied else name
        self.weighs = scope.weighted and self.reduce == "mean"
        self.waiting: Any = None
        self.value: Any = None
        self.epoch_value: float | None = None
        self.fresh = False
        self.closed = False
        self.stamp = -1
        self.step = -1
        self.window = -1
        self.source: Any = None
        self.reset()

    def _check(self, name: str) -> None:
        if self.on_step and not self.scope.steps:
            raise TrainerError(
                f"log({name!r}): in {self.scope.where} there are no steps. Got on_step=True. "
                "Log it with on_epoch=True, or in the batch's step."
            )
        if self.on_step and not self.scope.updates:
            raise TrainerError(
                f"log({name!r}): step values stand over updates, and {self.scope.where} makes "
                "none. Got on_step=True. Leave it out (the mean over the evaluation is kept), or "
                "pass on_step=self.trainer.training in code that training shares."
            )
        if not self.on_step and not self.on_epoch:
            raise TrainerError(
                f"log({name!r}): a value goes to steps, to the epoch, or both. "
                "Got on_step=False and on_epoch=False. Set one of them."
            )

    @property
    def resolved(self) -> tuple[Any, ...]:
        """What the flags mean, defaults filled in."""
        asked = self.on_epoch and not self.implied
        return self.to_bar, self.to_logger, self.on_step, asked, self.reduce

    def only_asked(self) -> None:
        """Gives up the aggregate that nobody asked for: its name is taken, or it has no weights."""
        if self.implied:
            self.implied = self.on_epoch = False
            self.epoch_key = self.name
            self.reset()

    def reset(self) -> None:
        """Starts a new epoch; the last values stay readable."""
        if self.source is not None:
            self.source.reset()
            self.source = None
        self.measured = self.waiting = None
        self.total = _START[self.reduce]
        self.count = 0.0
        self.pending: list[tuple[Any, float]] = []

    def kept(self) -> tuple[Any, ...]:
        """What a new value changes, for `put_back`."""
        return (
            *(self.value, self.fresh, self.closed, self.stamp, self.total, self.count),
            *(self.measured, self.waiting, list(self.pending)),
        )

    def put_back(self, kept: tuple[Any, ...]) -> None:
        """Goes back to what `kept` gave."""
        self.value, self.fresh, self.closed, self.stamp, self.total, self.count = kept[:6]
        self.measured, self.waiting, self.pending = kept[6:]

    def close(self, step: int) -> float | None:
        """Ends an epoch at an update: keeps its aggregate, if there is one, and starts afresh."""
        value = self.aggregate()
        if value is not None:
            self.epoch_value, self.closed, self.step = value, True, step
            self.reset()
        return value

    def add(self, value: Any, weight: float) -> None:
        """Adds a value, a float or a device scalar, to the epoch's aggregate."""
        if type(value) is not float:
            self.pending.append((value, weight))
            if len(self.pending) >= COLLAPSE_AT:
                self._collapse()
            return
        reduce = self.reduce
        if reduce == "mean":
            self.total += value * weight
            self.count += weight
        else:
            self.total = _JOIN[reduce](self.total, value)
            self.count += 1.0

    def join(self, total: float, count: float) -> None:
        """Adds what another process aggregated."""
        self._collapse()
        self.total = _JOIN.get(self.reduce, _sum)(self.total, total)
        self.count += count

    def measure(self, result: Any, *, whole: bool) -> None:
        """Takes in the batches behind the result of a metric.

        Args:
            result: A metric that holds them.
            whole: They are all batches so far, not those of one step.
        """
        held, waiting = self.measured, self.waiting
        if whole or (held is None and waiting is None):
            self.measured = result
        else:
            if held is None:
                held = copy.copy(result)
                held.load_state_dict(waiting["state"])
            self.measured = copy.copy(held).merge(result)
        self.waiting = None

    def aggregate(self) -> float | None:
        """The exact aggregate of what was added since `reset`; waits for a GPU."""
        if self.measured is not None:
            return to_float(scalar(self.name, self.measured.compute()))
        if self.waiting is not None:
            return float(self.waiting["value"])
        if self.source is not None:
            if not self.source.updates:
                return None
            return to_float(scalar(self.name, self.source.compute()))
        self._collapse()
        if not self.count:
            return None
        return self.total / self.count if self.reduce == "mean" else self.total

    def latest(self) -> float | None:
        """The last value as a number; waits for a GPU."""
        return None if self.value is None else to_float(self.value)

    def _collapse(self) -> None:
        if not self.pending:
            return
        pending, self.pending = self.pending, []
        xp = backend.of(pending[0][0]).xp
        values = backend.to_host(xp.stack([value for value, _ in pending]))
        for value, (_, weight) in zip(values.tolist(), pending, strict=True):
            self.add(float(value), weight)


def _max(total: float, value: float) -> float:
    return value if value > total or value != value else total


def _min(total: float, value: float) -> float:
    return value if value < total or value != value else total


def _sum(total: float, value: float) -> float:
    return total + value


_START = {"mean": 0.0, "sum": 0.0, "max": -math.inf, "min": math.inf}
_JOIN: dict[str, Callable[[float, float], float]] = {"sum": _sum, "max": _max, "min": _min}


def _reduction(name: str, reduce: Any) -> str:
    label = getattr(reduce, "__name__", reduce)
    if label in REDUCTIONS:
        return str(label)
    raise ArgumentError(
        f"log({name!r}): reduce_fx must be one of {', '.join(REDUCTIONS)}. Got {reduce!r}. "
        "Log the parts that can be added (sums and counts) and divide in on_train_epoch_end."
    )


def scalar(name: str, value: Any) -> Any:
    """A number out of the graph: a float, or a device scalar that nobody else holds.

    Args:
        name: Name in messages.
        value: A number, or a tensor or array with one element.

    Raises:
        ArgumentError: It is something else.
    """
    array = value._array if isinstance(value, Tensor) else value
    if isinstance(array, np.ndarray | np.generic):
        if array.size == 1:
            return float(array.item())
    elif isinstance(value, bool | int | float):
        return float(value)
    elif backend.is_array(array) and array.size == 1:
        return array.reshape(()).copy()
    raise ArgumentError(
        f"log({name!r}): a value is a number or a tensor with one element. "
        f"Got {describe(value)}. Reduce it first, for example with .mean()."
    )


def to_float(value: Any) -> float:
    """A float or device scalar as a float; waits for a GPU."""
    return value if type(value) is float else float(backend.to_host(value).item())
