"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from ...errors import ArgumentError, CheckpointError
from ..optimizer import Optimizer
from .base import LRScheduler, check_count
from .plateau import ReduceLROnPlateau


class _Composed(LRScheduler):
    """Holds the parts, and their states."""

    _not_saved = ("optimizer", "_schedulers")

    def _check_parts(self, optimizer: Optimizer | None, parts: list[Any]) -> Optimizer:
        kind = type(self).__name__
        if not parts:
            raise ArgumentError(f"{kind}: at least one schedule is needed. Got none.")
        for i, part in enumerate(parts):
            if not isinstance(part, LRScheduler) or isinstance(part, ReduceLROnPlateau):
                raise ArgumentError(
                    f"{kind}: schedule {i} must follow the step alone. Got {type(part).__name__}. "
                    "Call ReduceLROnPlateau on its own, with its metric."
                )
            optimizer = part.optimizer if optimizer is None else optimizer
            if part.optimizer is not optimizer:
                raise ArgumentError(
                    f"{kind}: all schedules must belong to one optimizer. Schedule {i}, "
                    f"{type(part).__name__}, has another. Make them with the same one."
                )
        assert optimizer is not None
        return optimizer

    def state_dict(self) -> dict[str, Any]:
        """The state with those of the parts."""
        return {**super().state_dict(), "schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts back what `state_dict` returned, in the parts as well.

        Raises:
            CheckpointError: The parts are others than in the saved run.
        """
        state = dict(state_dict)
        parts = state.pop("schedulers", [])
        if len(parts) != len(self._schedulers):
            raise CheckpointError(
                f"{type(self).__name__}.load_state_dict: the state has {len(parts)} schedules, "
                f"this one {len(self._schedulers)}. Make the schedule that was saved."
            )
        super().load_state_dict(state)
        for schedule, part in zip(self._schedulers, parts, strict=True):
            schedule.load_state_dict(part)

    _schedulers: list[LRScheduler]


class SequentialLR(_Composed):
    """Schedules one after the other.

    Args:
        optimizer: Its groups get the rates.
        schedulers: The schedules, made with the same optimizer.
        milestones: For each but the first the step at which it takes over.
        last_epoch: As in `LRScheduler`.

    Raises:
        ArgumentError: The parts do not belong together, or the milestones do not fit.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = self._check_parts(optimizer, schedulers)
        self._milestones = [check_count(self, "milestones", m, 0) for m in milestones]
        if len(milestones) != len(schedulers) - 1 or sorted(milestones) != self._milestones:
            raise ArgumentError(
                "SequentialLR: milestones must rise, one less than there are schedules. "
                f"Got {self._milestones} for {len(schedulers)} schedules."
            )
        self._schedulers = list(schedulers)
        self.last_epoch = last_epoch + 1
        # Every part has set its first rate when it was made; only the first one shall.
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        _undo(self._schedulers)
        self._schedulers[bisect_right(self._milestones, 0)]._initial_step()
        self._last_lr = self._rates()

    def step(self) -> None:
        """Moves the schedule on whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            schedule._restart()
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()

    def _initial_step(self) -> None:
        self.last_epoch = 0
        self._schedulers[bisect_right(self._milestones, 0)]._initial_step()
        self._last_lr = self._rates()

    def _restart(self) -> None:
        self.last_epoch = 0
        self._schedulers[bisect_right(self._milestones, 0)]._restart()
        self._last_lr = self._rates()


class ChainedScheduler(_Composed):
    """Several schedules at once: each multiplies the rate that the one before it left.

    Args:
        schedulers: The schedules, made with the same optimizer.
        optimizer: Their optimizer; optional.

    Raises:
        ArgumentError: The parts do not belong together.
    """

    def __init__(self, schedulers: list[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.optimizer = self._check_parts(optimizer, schedulers)
        self._schedulers = list(schedulers)
        self.last_epoch = self._schedulers[-1].last_epoch
        self._last_lr = self._rates()

    def step(self) -> None:
        """Moves every schedule on, in order."""
        for schedule in self._schedulers:
            schedule.step()
        self.last_epoch += 1
        self._last_lr = self._rates()

    def _initial_step(self) -> None:
        for schedule in self._schedulers:
            schedule._initial_step()
        self.last_epoch = 0
        self._last_lr = self._rates()

    def _restart(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for schedule in self._schedulers:
            schedule.last_epoch = -1
            schedule._initial_step()
        self.last_epoch = 0
        self._last_lr = self._rates()


def _undo(schedules: list[LRScheduler]) -> None:
    """Takes back the step that each schedule made when it was created."""
    for schedule in schedules:
        if isinstance(schedule, _Composed):
            _undo(schedule._schedulers)
        else:
            schedule.last_epoch -= 1
