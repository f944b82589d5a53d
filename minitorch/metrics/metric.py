"""What all metrics share: a state that grows by batches, and a value computed from it."""

from __future__ import annotations

import copy
import functools
from typing import Any, Self

import numpy as np

from .. import backend
from ..errors import ArgumentError, CheckpointError, ShapeError, describe
from ..ops.primitive import wrap
from ..tensor import Tensor
from . import states

State = dict[str, Any]


class Metric:
    """A measure over many batches.

    Its state holds sums (or lists of what has to be kept), so that the value over all batches is
    exact, whatever their sizes, and the states of several runs or processes can be merged. In a
    Trainer pass the object itself: `self.log("accuracy", self.accuracy)` computes it at the end of
    the epoch and resets it.

    A metric of your own declares its states with `add_state` and overrides `update` and `compute`.

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

    updates: int
    batch_value: Any
    _state: State
    _defaults: State
    _reductions: dict[str, states.Reduction]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Here, so that metrics whose __init__ comes late or never calls this one have them too.
        one = super().__new__(cls)
        one._state, one.updates, one.batch_value = {}, 0, None
        one._defaults, one._reductions = {}, {}
        return one

    def __init__(self) -> None:
        pass

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, around in (("update", _counting), ("reset", _forgetting)):
            method = getattr(cls, name)
            if method is not getattr(Metric, name) and not hasattr(method, "_of_metric"):
                setattr(cls, name, around(method))

    def add_state(self, name: str, default: Any, dist_reduce_fx: states.Reduction = None) -> None:
        """Declares an attribute that `update` changes and `reset` puts back; saved and merged.

        Args:
            name: The attribute.
            default: Where it starts: a tensor, an array, a number, or an empty list.
            dist_reduce_fx: How states of several processes become one: "sum", "mean" (weighted by
                updates), "max", "min", "cat", or a function of the stacked states; lists are
                always put together.

        Raises:
            ArgumentError: The name is taken, or default or dist_reduce_fx are of another kind.
        """
        states.check(self, name, default, dist_reduce_fx)
        self._defaults[name] = states.copied(default)
        self._reductions[name] = dist_reduce_fx
        setattr(self, name, states.copied(default))

    def _contribution(self, preds: Any, target: Any) -> State:
        """What one batch adds: numbers or arrays that are summed, or lists that are kept."""
        raise NotImplementedError(
            f"{type(self).__name__} must override update() and compute(), after add_state()"
        )

    def _value(self, state: State) -> Any:
        """The value of a state whose arrays are on the host."""
        raise NotImplementedError(f"{type(self).__name__} must override compute()")

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Takes in a batch and gives the value of this batch alone; arguments as in `update`."""
        if self._replaces():
            return self._call_on(*args, **kwargs)
        one = self._copy()
        one.reset()
        one.update(*args, **kwargs)
        self.update(*args, **kwargs)
        value = self.batch_value = one.compute()
        number = backend.to_host(value.detach()._array) if isinstance(value, Tensor) else value
        if self._defaults and isinstance(number, np.ndarray | np.generic | float | int):
            value = self.batch_value = _result(_tensor(number), one, whole=False)
        return value

    def _call_on(self, preds: Any, target: Any) -> Any:
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

    def _copy(self) -> Self:
        """A copy that neither writes into this metric's state nor sees what it takes in later."""
        one = self._alone()
        one._restore(self._snapshot())
        return one

    def _snapshot(self) -> dict[str, Any]:
        """All attributes as they are now, to go back to."""
        held = dict(vars(self))
        return held if self._replaces() else {k: states.copied(v) for k, v in held.items()}

    def _restore(self, snapshot: dict[str, Any]) -> None:
        """Goes back to a snapshot, which can be used again."""
        whole = self._replaces()
        vars(self).update(snapshot if whole else {k: states.copied(v) for k, v in snapshot.items()})

    def _replaces(self) -> bool:
        """Whether updates replace the state and never write into it."""
        return type(self).update is Metric.update

    def _keeps_attributes(self) -> bool:
        """Whether its batches are kept in attributes, not in what `_contribution` gives."""
        return type(self)._contribution is Metric._contribution

    def reset(self) -> None:
        """Forgets all batches.

        Raises:
            ArgumentError: The metric keeps batches in attributes that nothing puts back.
        """
        kept = [] if self._defaults or type(self).reset is not Metric.reset else self._own_names()
        if kept and self.updates:
            raise ArgumentError(
                f"{type(self).__name__}.reset: a metric with an update() of its own says where it "
                f"starts anew. Got neither add_state() nor reset() for {', '.join(kept)}. "
                "Declare them with self.add_state(name, default) in __init__, or override reset()."
            )
        self._state, self.updates, self.batch_value = {}, 0, None
        for name, default in self._defaults.items():
            setattr(self, name, states.copied(default))

    def _own_names(self) -> list[str]:
        """The attributes that an overridden `update` may change, as far as a file can hold them."""
        if self._defaults:
            return list(self._defaults)
        if not self._keeps_attributes():
            return []
        return [k for k, v in vars(self).items() if k not in _BASE and states.can_be_saved(v)]

    def to(self, device: Any) -> Self:
        """Moves the states that `add_state` declared; inputs on another device do so as well."""
        for name in self._defaults:
            setattr(self, name, states.moved(getattr(self, name), device))
        return self

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
        if self._keeps_attributes():
            everyone: list[Metric] = [self, *others]
            return self._merge_states([one for one in everyone if one.updates])
        for other in others:
            if other.updates:
                theirs = _on_host(other._state)
                mine = _on_host(self._state)
                self._state = self._joined(mine, theirs) if self._state else theirs
                self.updates += other.updates
        return self

    def _merge_states(self, parts: list[Any]) -> Self:
        if not self._defaults:
            raise ArgumentError(
                f"{type(self).__name__}.merge: the states of several runs or processes become one "
                "by their dist_reduce_fx. Got a metric without declared states. Declare them in "
                '__init__, for example self.add_state("total", torch.tensor(0.0), "sum").'
            )
        counts = [part.updates for part in parts]
        for name, reduction in self._reductions.items() if parts else ():
            held = [getattr(part, name) for part in parts]
            joined = states.merged(type(self).__name__, name, reduction, held, counts)
            setattr(self, name, states.copied(joined))
        self.updates = sum(counts)
        return self

    def _options(self) -> dict[str, Any]:
        skipped = {*_BASE, *self._defaults}
        if self._keeps_attributes():
            skipped |= {k for k, v in vars(self).items() if not isinstance(v, _SIMPLE)}
        return {k: v for k, v in vars(self).items() if k not in skipped}

    def clone(self) -> Self:
        """A copy with a state of its own."""
        return copy.deepcopy(self)

    def state_dict(self) -> dict[str, Any]:
        """The state, in arrays on the host."""
        state = _on_host(self._state)
        own = {k: states.moved(getattr(self, k), "cpu") for k in self._own_names()}
        state |= {k: states.copied(v) for k, v in own.items()}
        return {"kind": type(self).__name__, "updates": self.updates, "state": state}

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
        self._state, self.batch_value = {}, None
        self.updates = state_dict["updates"]
        own = self._keeps_attributes()
        for key, value in state_dict["state"].items():
            if own:
                setattr(self, key, states.copied(value))
            else:
                self._state[key] = list(value) if isinstance(value, list) else value

    def __repr__(self) -> str:
        options = ", ".join(f"{k}={v!r}" for k, v in self._options().items())
        return f"{type(self).__name__}({options})"


_BASE = ("_state", "_defaults", "_reductions", "updates", "batch_value")
_SIMPLE = (bool, int, float, str, tuple, type(None))


def _counting(update: Any) -> Any:
    """An `update` that counts, once, and has the states on the device of what it is given."""

    @functools.wraps(update)
    def counted(self: Metric, *args: Any, **kwargs: Any) -> None:
        before = self.updates
        if self._defaults:
            given = (v for v in (*args, *kwargs.values()) if isinstance(v, Tensor))
            first = next(given, None)
            if first is not None:
                self.to(first.device)
        update(self, *args, **kwargs)
        if self.updates == before:
            self.updates += 1

    counted._of_metric = True  # type: ignore[attr-defined]
    return counted


def _forgetting(reset: Any) -> Any:
    """A `reset` that forgets what the base keeps, whether or not it calls that of the base."""

    @functools.wraps(reset)
    def forgetting(self: Metric) -> None:
        Metric.reset(self)
        reset(self)

    forgetting._of_metric = True  # type: ignore[attr-defined]
    return forgetting


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
        key: [_host(v) for v in value] if isinstance(value, list) else np.asarray(_host(value))
        for key, value in state.items()
    }


def _host(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return np.asarray(value)
    return backend.to_host(value)


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
