"""What counts as a spike of the loss."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from minitorch.callbacks.monitor import refuse


class Spikes:
    """Compares each loss with the mean of those before it.

    A spike is a loss that is worse than the one before, and whose distance from the mean of the
    last `window` losses is at least `atol` and at least `rtol` times that mean, as far as each is
    given. A loss that is not finite is one, too, and never enters the mean. Where a batch has
    several losses, the first ones are compared with first ones, and so on.

    Args:
        who: Name of the callback, for messages.
        mode: "min" if a lower loss is better, "max" if a higher one is.
        window: Losses in the mean.
        warmup: Losses before the first that is judged.
        atol: Least absolute distance, or None.
        rtol: Least distance in units of the mean, or None.
        finite_only: Whether a loss that is not finite is a spike.
    """

    def __init__(
        self,
        who: str,
        *,
        mode: str,
        window: int,
        warmup: int,
        atol: float | None,
        rtol: float | None,
        finite_only: bool,
    ) -> None:
        self.who = who
        self.mode = mode
        self.window = window
        self.warmup = warmup
        self.atol = atol
        self.rtol = rtol
        self.finite_only = finite_only
        self.reset()

    def check(self) -> None:
        """Raises ArgumentError for arguments that cannot be meant."""
        if self.mode not in ("min", "max"):
            refuse(self.who, "mode", self.mode, '"min" or "max"')
        for name, least in (("window", 1), ("warmup", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                refuse(self.who, name, value, f"an integer ≥ {least}")
        for name in ("atol", "rtol"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value >= 0):
                refuse(self.who, name, value, "a number ≥ 0 or None")

    def reset(self) -> None:
        """Forgets all losses."""
        self._recent: list[deque[float]] = []
        self._seen: list[int] = []
        self._next = 0

    def begin_batch(self) -> None:
        """The next loss is the first one of a batch."""
        self._next = 0

    @property
    def mean(self) -> float:
        """What the last loss was compared with; nan if there was nothing."""
        recent = self._recent[self._next - 1] if self._next else ()
        return math.fsum(recent) / len(recent) if recent else math.nan

    def is_spike(self, loss: float) -> bool:
        """Judges one loss; one that is no spike enters the mean."""
        place = self._next
        self._next += 1
        if place == len(self._recent):
            self._recent.append(deque())
            self._seen.append(0)
        self._seen[place] += 1
        finite, recent = math.isfinite(loss), self._recent[place]
        if self._seen[place] > self.warmup and self._spikes(loss, recent, finite=finite):
            return True
        if finite:
            recent.append(loss)
            if len(recent) > self.window:
                recent.popleft()
        return False

    def _spikes(self, loss: float, recent: deque[float], *, finite: bool) -> bool:
        if not finite:
            return self.finite_only
        if not recent:
            return False
        last, mean = recent[-1], math.fsum(recent) / len(recent)
        if (loss <= last) if self.mode == "min" else (loss >= last):
            return False
        distance = abs(loss - mean)
        return (self.atol is None or distance >= self.atol) and (
            self.rtol is None or distance >= abs(self.rtol * mean)
        )

    def state_dict(self) -> dict[str, Any]:
        """The losses so far."""
        return {"recent": [list(recent) for recent in self._recent], "seen": list(self._seen)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the losses back."""
        self._recent = [deque(recent) for recent in state["recent"]]
        self._seen = list(state["seen"])
