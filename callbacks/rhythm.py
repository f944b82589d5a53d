"""Rhythm: an optional trigger of a callback, remembered until somebody acts on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.callbacks.triggers import Trigger
    from minitorch.trainer import Trainer


class Rhythm:
    """The argument `every` of a callback; without one it is always due.

    Args:
        owner: What it is for, in messages.
        every: A trigger, a span of time, or None.

    Attributes:
        pending: Whether the trigger has come due and nobody has acted on it yet.

    Raises:
        ArgumentError: It is something else.
    """

    def __init__(self, owner: str, every: Any) -> None:
        self.trigger: Trigger | None = None
        if every is not None:
            from minitorch.callbacks.triggers import as_trigger

            self.trigger = as_trigger(owner, every).fresh()
        self.pending = False

    @property
    def each_batch(self) -> bool:
        """Whether it must be looked at after each batch."""
        return self.trigger is not None and self.trigger.each_batch

    def reset(self) -> None:
        """Begins anew; raises ArgumentError if a value of the trigger is out of range."""
        self.pending = False
        if self.trigger is not None:
            self.trigger.check()
            self.trigger.reset()

    def start(self, trainer: Trainer) -> None:
        """A fit begins, with state that was saved in place."""
        if self.trigger is not None:
            self.trigger.start(trainer)

    def look(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        """Looks whether it comes due here; it stays so until `take`."""
        if self.trigger is not None and self.trigger.due(trainer, epoch_over=epoch_over):
            self.pending = True
        return self.pending

    def came(self, trainer: Trainer, *, epoch_over: bool = False) -> bool:
        """Whether there is a trigger and it comes due right here."""
        return self.look(trainer, epoch_over=epoch_over) and self.take()

    def take(self) -> bool:
        """Whether it is due; from here on it is not."""
        due, self.pending = self.pending, False
        return due or self.trigger is None

    def state_dict(self) -> dict[str, Any]:
        """What the trigger saw; empty without one."""
        if self.trigger is None:
            return {}
        state = {"every": repr(self.trigger), "trigger": self.trigger.state_dict()}
        return {**state, "pending": self.pending}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict` returned; another trigger starts afresh."""
        if self.trigger is not None and state_dict.get("every") == repr(self.trigger):
            self.trigger.load_state_dict(state_dict["trigger"])
            self.pending = state_dict["pending"]
