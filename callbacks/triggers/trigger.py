"""What a trigger is, and what counts as one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Self

from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.callbacks.callback import Callback
    from minitorch.trainer import Trainer


class Trigger:
    """When something happens; its owner asks it at the end of each batch and epoch.

    Who uses one keeps a copy (`fresh`), since being asked changes its state.
    """

    each_batch = True
    """Whether it can come due after a batch, and not only at the end of an epoch."""

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        """Whether it came due since it was asked last; asking again in one place gives False."""
        raise NotImplementedError(f"{type(self).__name__} must override due()")

    def check(self) -> None:
        """Raises ArgumentError if a value is out of range."""

    def reset(self) -> None:
        """Forgets what it saw."""

    def start(self, trainer: Trainer) -> None:
        """A fit begins; the position, and state that was saved, are there already."""

    def state_dict(self) -> dict[str, Any]:
        """What it saw so far."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict` returned."""

    def fresh(self) -> Self:
        """A copy that has seen nothing."""
        other = copy.deepcopy(self)
        other.reset()
        return other

    def __or__(self, other: Trigger) -> Trigger:
        from minitorch.callbacks.triggers.combined import AnyOf

        return AnyOf(self, as_trigger("|", other))

    def __and__(self, other: Trigger) -> Trigger:
        from minitorch.callbacks.triggers.combined import AllOf

        return AllOf(self, as_trigger("&", other))

    def after(self, other: Trigger) -> Trigger:
        """Silent until `other` has come due; at that moment it counts already."""
        from minitorch.callbacks.triggers.combined import After

        return After(self, as_trigger("after", other))

    def until(self, other: Trigger) -> Trigger:
        """Silent from the moment on at which `other` comes due."""
        from minitorch.callbacks.triggers.combined import Until

        return Until(self, as_trigger("until", other))

    def call(self, function: Callable[..., Any], **options: Any) -> Callback:
        """A callback that calls `function` whenever this comes due; see `every`."""
        from minitorch.callbacks.triggered import every

        return every(self, function, **options)


def as_trigger(owner: str, value: Any) -> Trigger:
    """A trigger from what a user gives: one, or a span of time as for `max_time`.

    Args:
        owner: What it is for, in messages.
        value: A trigger, "DD:HH:MM:SS", a timedelta, or the keywords of one as a dict.

    Raises:
        ArgumentError: It is something else; a bare number has no unit.
    """
    if isinstance(value, Trigger):
        return value
    if isinstance(value, str | timedelta | dict):
        from minitorch.callbacks.duration import parse_duration
        from minitorch.callbacks.triggers.units import Seconds

        return Seconds(parse_duration(owner, value).total_seconds())
    _refuse(owner, value)


def _refuse(owner: str, value: Any) -> NoReturn:
    fix = "Pass for example Steps(100), Epochs(1) or Minutes(5)."
    if isinstance(value, int | float):
        fix = f"Did you mean Steps({value}), Batches({value}) or Epochs({value})?"
    elif isinstance(value, type):
        fix = f"Make an object of it, with its interval: {value.__name__}(100)."
    raise ArgumentError(
        f"{owner}: an interval carries its unit: a trigger of minitorch.callbacks.triggers. "
        f"Got {value!r}. {fix}"
    )
