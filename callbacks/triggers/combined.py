"""Triggers made of others: either, both, after, until, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.triggers.trigger import Trigger, as_trigger

if TYPE_CHECKING:
    from minitorch.trainer import Trainer


class _Combined(Trigger):
    """Several triggers, all of which are asked each time."""

    def __init__(self, *parts: Trigger) -> None:
        self.parts = parts

    @property
    def each_batch(self) -> bool:  # type: ignore[override]
        """If a part can come due after a batch."""
        return any(part.each_batch for part in self.parts)

    def _ask(self, trainer: Trainer, *, epoch_over: bool) -> list[bool]:
        return [part.due(trainer, epoch_over=epoch_over) for part in self.parts]

    def check(self) -> None:
        for part in self.parts:
            part.check()

    def reset(self) -> None:
        for part in self.parts:
            part.reset()

    def start(self, trainer: Trainer) -> None:
        for part in self.parts:
            part.start(trainer)

    def state_dict(self) -> dict[str, Any]:
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)


class AnyOf(_Combined):
    """`a | b`: when either comes due."""

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        return any(self._ask(trainer, epoch_over=epoch_over))

    def __repr__(self) -> str:
        return " | ".join(_inner(part, AnyOf) for part in self.parts)


class AllOf(_Combined):
    """`a & b`: when both have come due since the last time: "every 100 updates, but not more
    often than every five minutes" is `Steps(100) & Minutes(5)`."""

    def __init__(self, *parts: Trigger) -> None:
        super().__init__(*parts)
        self._came = [False] * len(parts)

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        asked = self._ask(trainer, epoch_over=epoch_over)
        self._came = [before or now for before, now in zip(self._came, asked, strict=True)]
        if not all(self._came):
            return False
        self._came = [False] * len(self.parts)
        return True

    def reset(self) -> None:
        super().reset()
        self._came = [False] * len(self.parts)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "came": list(self._came)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._came = list(state_dict["came"])

    def __repr__(self) -> str:
        return " & ".join(_inner(part, AllOf) for part in self.parts)


class _Gated(_Combined):
    """A trigger and a second one that opens or closes it for good."""

    def __init__(self, trigger: Trigger, gate: Trigger) -> None:
        super().__init__(trigger, gate)
        self._passed = False

    def _asked(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        due, gate = self._ask(trainer, epoch_over=epoch_over)
        self._passed = self._passed or gate
        return due

    def reset(self) -> None:
        super().reset()
        self._passed = False

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "passed": self._passed}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._passed = state_dict["passed"]

    def __repr__(self) -> str:
        trigger, gate = self.parts
        return f"{_inner(trigger)}.{type(self).__name__.lower()}({gate!r})"


class After(_Gated):
    """`a.after(b)`: a, once b has come due.

    Args:
        trigger: a.
        gate: b.
    """

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        return self._asked(trainer, epoch_over=epoch_over) and self._passed


class Until(_Gated):
    """`a.until(b)`: a, until b comes due.

    Args:
        trigger: a.
        gate: b.
    """

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        return self._asked(trainer, epoch_over=epoch_over) and not self._passed


class Once(_Combined):
    """The first time that a trigger comes due, and never again."""

    def __init__(self, trigger: Trigger) -> None:
        super().__init__(as_trigger("Once", trigger))
        self._done = False

    def due(self, trainer: Trainer, *, epoch_over: bool) -> bool:
        [came] = self._ask(trainer, epoch_over=epoch_over)
        first = came and not self._done
        self._done = self._done or came
        return first

    def reset(self) -> None:
        super().reset()
        self._done = False

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "done": self._done}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._done = state_dict["done"]

    def __repr__(self) -> str:
        return f"Once({self.parts[0]!r})"


def _inner(part: Trigger, around: type[Trigger] | None = None) -> str:
    joined = isinstance(part, AnyOf | AllOf) and type(part) is not around
    return f"({part!r})" if joined else repr(part)
