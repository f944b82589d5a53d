"""What all learning-rate schedules share."""

from __future__ import annotations

import warnings
from typing import Any

from ...errors import ArgumentError, CheckpointError
from ..optimizer import Optimizer


class LRScheduler:
    """Base of the schedules: sets the `"lr"` of every group of an optimizer, step by step.

    A subclass overrides `get_lr`, which returns one rate per group for step `self.last_epoch`, from
    `self.base_lrs` or from the present rates. Call `step` after `optimizer.step()`.

    Args:
        optimizer: Its groups get the rates.
        last_epoch: -1 for a new run; otherwise the step that was reached, for groups that hold
            `"initial_lr"`.

    Attributes:
        base_lrs: The rates that the schedule starts from.
        last_epoch: How many times `step` was called.

    Raises:
        ArgumentError: `optimizer` is none, or a group has no `"initial_lr"` to resume from.

    >>> optimizer = mt.optim.SGD([mt.nn.Parameter(mt.ones(1))], lr=1.0)
    >>> schedule = mt.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates += schedule.get_last_lr()
    ...     schedule.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5]
    """

    _not_saved: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = check_optimizer(self, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise ArgumentError(
                    f"{type(self).__name__}: group {i} has no 'initial_lr', which last_epoch="
                    f"{last_epoch} needs. Load the optimizer's state first, or leave last_epoch "
                    "away."
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates for step `self.last_epoch`; `get_last_lr` tells those in force."""
        raise NotImplementedError(f"{type(self).__name__} must override get_lr()")

    def get_last_lr(self) -> list[float]:
        """The rates that this schedule set last, one per group."""
        return list(self._last_lr)

    def step(self) -> None:
        """Moves on by one and sets the rates."""
        if self._step_count == 1:
            warn_if_first(self)
        self._step_count += 1
        self.last_epoch += 1
        self._set(self.get_lr())

    def _first(self) -> list[float]:
        """The rates at step 0, whatever the groups have now."""
        return self.get_lr()

    def _restart(self) -> None:
        """Begins at step 0."""
        self.last_epoch = 0
        self._set(self._first())

    def _rates(self) -> list[float]:
        """The rates in force."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def _set(self, rates: list[float]) -> None:
        self._check_groups(len(rates))
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = list(rates)

    def _check_groups(self, count: int) -> None:
        """Raises if a group was added that the schedule knows no base rate of."""
        groups = len(self.optimizer.param_groups)
        if groups != count:
            raise ArgumentError(
                f"{type(self).__name__}: the schedule was made for {count} groups, the "
                f"optimizer has {groups} now. Make the schedule after add_param_group()."
            )

    def state_dict(self) -> dict[str, Any]:
        """The state as plain values; functions and the optimizer are not part of it."""
        state = {
            k: list(v) if isinstance(v, tuple) else v
            for k, v in vars(self).items()
            if k not in self._not_saved
        }
        return {"kind": type(self).__name__, **state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts back what `state_dict` returned.

        Raises:
            CheckpointError: It comes from a schedule of another kind, or for other groups.
        """
        kind = type(self).__name__
        if state_dict.get("kind") != kind:
            raise CheckpointError(
                f"{kind}.load_state_dict: the state must come from a {kind}. "
                f"Got one of {state_dict.get('kind')}. Make the schedule that was saved."
            )
        saved = state_dict.get("_last_lr")
        groups = len(self.optimizer.param_groups)
        if saved is not None and len(saved) != groups:
            raise CheckpointError(
                f"{kind}.load_state_dict: the state has {len(saved)} groups, the optimizer "
                f"{groups}. Make the optimizer with the same groups."
            )
        for key, value in state_dict.items():
            if key != "kind" and key not in self._not_saved:
                setattr(self, key, list(value) if isinstance(value, list) else value)


class Chainable(LRScheduler):
    """A schedule that multiplies the present rates, so that several can act together."""

    def _first_factor(self) -> float:
        """The factor of the base rates at step 0."""
        return 1.0

    def _first(self) -> list[float]:
        factor = self._first_factor()
        return [base * factor for base in self.base_lrs]


def check_optimizer(schedule: Any, optimizer: Any) -> Optimizer:
    """The optimizer, if it is one.

    Raises:
        ArgumentError: It is something else.
    """
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(
            f"{type(schedule).__name__}: the first argument is the optimizer. "
            f"Got {type(optimizer).__name__}. Pass an instance of minitorch.optim.Optimizer."
        )
    return optimizer


def warn_if_first(schedule: LRScheduler) -> None:
    """Warns if the schedule moves on before the optimizer has tried its first update."""
    optimizer = schedule.optimizer
    if not optimizer.updates and not optimizer._skipped:
        warnings.warn(
            f"{type(schedule).__name__}.step() came before optimizer.step(): the first rate of "
            "the schedule is never used. Call optimizer.step() first.",
            UserWarning,
            stacklevel=3,
        )


def per_group(schedule: Any, name: str, value: Any, optimizer: Optimizer) -> list[Any]:
    """One value for each group, from one or from a list.

    Raises:
        ArgumentError: A list has another length than there are groups.
    """
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * groups
    if len(value) != groups:
        raise ArgumentError(
            f"{type(schedule).__name__}: {name} must have one value per parameter group. "
            f"Got {len(value)} for {groups} groups."
        )
    return list(value)


def check_count(schedule: Any, name: str, value: Any, low: int = 1) -> int:
    """`value`, if it is an integer, or a float without fraction, that is at least `low`.

    Raises:
        ArgumentError: It is not.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ArgumentError(
            f"{type(schedule).__name__}: {name} must be an integer, at least {low}. Got {value!r}."
        )
    return value


def check_between(
    schedule: Any, name: str, value: Any, low: float, high: float, *, open_low: bool = False
) -> float:
    """`value`, if it lies between `low` and `high`.

    Raises:
        ArgumentError: It does not.
    """
    number = isinstance(value, int | float)
    if not number or not (low < value if open_low else low <= value) or not value <= high:
        rule = f"{'above' if open_low else 'at least'} {low:g} and at most {high:g}"
        raise ArgumentError(
            f"{type(schedule).__name__}: {name} must be a number, {rule}. Got {value!r}."
        )
    return float(value)
