"""What all metrics share: a state that grows by batches, and a value computed from it."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from .. import backend
from ..errors import ArgumentError, CheckpointError, ShapeError, describe
from ..ops.primitive import wrap
from ..tensor import Tensor

State = dict[str, Any]


class Metric:
    """A measure over many batches.

    Its state holds sums (or lists of what has to be kept), so that the value over all batches is
    exact, whatever their sizes, and the states of several runs or processes can be merged. In a
    Trainer pass the object itself: `self.log("accuracy", self.accuracy)` computes it at the end of
    the epoch and resets it.

    A subclass overrides `_contribution` and `_value`.

    Attributes:
        updates: Batches since the last reset.
        batch_value: The value of the last batch alone, if the metric was called.

    Raises:
        ArgumentError: `compute` before any update, or inputs outside of their rule.
        ShapeError: Inputs whose shapes do not belong together; nothing is broadcast.

    >>> accuracy = mt.metrics.Accuracy(num_classes=3)
    >>> accuracy.update(mt.tensor([0, 1, 2, 2]), mt.tensor([0, 1, 1, 2]))
    >>> accuracy.compute().item()
    0.75
    """

    def __init__(self) -> None:
        self._state: State = {}
        self.updates = 0
        self.batch_value: Any = None

    def _contribution(self, preds: Any, target: Any) -> State:
        """What one batch adds: arrays that are summed, or lists of arrays that are kept."""
        raise NotImplementedError(f"{type(self).__name__} must override _contribution()")

    def _value(self, state: State) -> Any:
        """The value of a state whose arrays are on the host."""
        raise NotImplementedError(f"{type(self).__name__} must override _value()")

    def _joined(self, first: State, second: State) -> State:
        """The state of the batches of both."""
        return {key: first[key] + second[key] for key in first}

    def update(self, preds: Any, target: Any) -> None:
        """Takes in a batch.

        Args:
            preds: What the model gives.
            target: What it should give.
        """
        self._take(self._contribution(_detached(self, preds), _detached(self, target)))

    def _take(self, new: State) -> None:
        self._state = self._joined(self._state, new) if self._state else new
        self.updates += 1

    def __call__(self, preds: Any, target: Any) -> Any:
        """Takes in a batch and gives the value of this batch alone; arguments as in `update`."""
        new = self._contribution(_detached(self, preds), _detached(self, target))
        self._take(new)
        one = self._alone()
        one._state, one.updates = new, 1
        self.batch_value = _result(_tensor(self._value(_on_host(new))), one, whole=False)
        return self.batch_value

    def compute(self) -> Any:
        """The value over all batches since the last reset.

        Returns:
            float64[], or one value per class.
        """
        if not self.updates:
            raise ArgumentError(
                f"{type(self).__name__}.compute: at least one update is needed. Got none since "
                "the last reset. Call update(preds, target) first."
            )
        value = _tensor(self._value(_on_host(self._state)))
        return _result(value, self._alone(), whole=True)

    def _alone(self) -> Self:
        """A copy for this moment: updates replace the state and never write into it."""
        one = copy.copy(self)
        one.batch_value = None
        return one

    def reset(self) -> None:
        """Forgets all batches."""
        self._state, self.updates, self.batch_value = {}, 0, None

    def merge(self, *others: Metric) -> Self:
        """Takes in the batches of other metrics with the same options.

        Args:
            others: Metrics of this kind, for example from other processes.

        Raises:
            ArgumentError: One is of another kind or has other options.
        """
        for other in others:
            if type(other) is not type(self) or other._options() != self._options():
                raise ArgumentError(
                    f"{type(self).__name__}.merge: metrics must be of one kind with equal options. "
                    f"Got {type(other).__name__} with {other._options()} for {self._options()}."
                )
            if other.updates:
                theirs = _on_host(other._state)
                mine = _on_host(self._state)
                self._state = self._joined(mine, theirs) if self._state else theirs
                self.updates += other.updates
        return self

    def _options(self) -> dict[str, Any]:
        skipped = ("_state", "updates", "batch_value")
        return {k: v for k, v in vars(self).items() if k not in skipped}

    def clone(self) -> Self:
        """A copy with a state of its own."""
        return copy.deepcopy(self)

    def state_dict(self) -> dict[str, Any]:
        """The state, in arrays on the host."""
        return {
            "kind": type(self).__name__,
            "updates": self.updates,
            "state": _on_host(self._state),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts back what `state_dict` returned.

        Raises:
            CheckpointError: It comes from a metric of another kind.
        """
        if state_dict.get("kind") != type(self).__name__:
            raise CheckpointError(
                f"{type(self).__name__}.load_state_dict: the state must come from this kind. "
                f"Got one of {state_dict.get('kind')}. Make the metric that was saved."
            )
        self.reset()
        self.updates = state_dict["updates"]
        self._state = {
            key: list(value) if isinstance(value, list) else value
            for key, value in state_dict["state"].items()
        }

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in self._options().items())
        return f"{type(self).__name__}({options})"


class Result(Tensor):
    """The value of a metric, which knows the batches that it was computed from.

    So `self.log` of a Trainer can give the exact value over an epoch, where a mean of values of
    batches would be another number. What is computed from it is an ordinary tensor.
    `float(result)` is an ordinary number as well, because Python's `float` gives no subclass,
    whatever `__float__` returns: log the result itself or its `item()`.

    Attributes:
        measured_by: A metric that holds the batches, and whether they are all since its reset
            or those of one call.
    """

    __slots__ = ()

    measured_by: tuple[Metric, bool]

    def item(self) -> Any:
        """The value as a number that knows its batches as well."""
        number = Number(super().item())
        number.measured_by = self.measured_by
        return number

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.detach().__reduce_ex__(protocol)


class Number(float):
    """A `Result` as a Python number."""

    measured_by: tuple[Metric, bool]

    def __reduce__(self) -> Any:
        return float, (float(self),)


def _result(value: Tensor, metric: Metric, *, whole: bool) -> Tensor:
    """`value`, knowing its batches if it is one number."""
    if value._array.size != 1:
        return value
    value.__class__ = Result  # the same slots and the same array under the other name
    value.measured_by = (metric, whole)  # type: ignore[attr-defined]
    return value


def _detached(metric: Metric, value: Any) -> Any:
    if not isinstance(value, Tensor):
        raise ArgumentError(
            f"{type(metric).__name__}: inputs must be tensors. Got {type(value).__name__}. "
            "Convert it with minitorch.tensor(...)."
        )
    return value.detach()._array


def _on_host(state: State) -> State:
    return {
        key: [backend.to_host(v) for v in value]
        if isinstance(value, list)
        else np.asarray(backend.to_host(value))
        for key, value in state.items()
    }


def _tensor(value: Any) -> Any:
    array = np.asarray(value)
    return wrap(array if array.dtype.kind in "iu" else array.astype(np.float64))


def check_same_shape(metric: Metric, preds: Any, target: Any) -> None:
    """Raises unless both have one shape.

    Raises:
        ShapeError: They have not.
    """
    if preds.shape != target.shape:
        raise ShapeError(
            f"{type(metric).__name__}: preds and target must have one shape. "
            f"Got {describe(wrap(preds))} and {describe(wrap(target))}. "
            "Use squeeze or reshape so that each prediction has its target."
        )


def check_one_of(metric: Metric, name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """`value`, if it is allowed.

    Raises:
        ArgumentError: It is not.
    """
    if value not in allowed:
        raise ArgumentError(
            f"{type(metric).__name__}: {name} must be one of {', '.join(map(repr, allowed))}. "
            f"Got {value!r}."
        )
    return value
