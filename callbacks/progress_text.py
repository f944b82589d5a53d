"""Numbers of a progress bar as text, and the estimate of the time that is left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

_SMOOTHING = 0.3


def joined(parts: Iterable[str]) -> str:
    """The parts that are not empty, with commas between."""
    return ", ".join(part for part in parts if part)


def metrics_text(
    values: Mapping[str, float],
    *,
    of_epoch: bool = False,
    delimiter: str = ", ",
    form: str = "",
) -> str:
    """`name=0.5213` for each metric.

    A metric with values of steps and of epochs is called `name_step`, `name_epoch` and, for the
    newer one, `name`; the first two are shown, or only the last one.

    Args:
        values: Numbers by name.
        of_epoch: An epoch has just ended, so that `name` is its value.
        delimiter: Between two metrics.
        form: Format of a value, such as ".3f"; "" for four significant digits.
    """
    both = {name for name in values if f"{name}_step" in values}
    hidden = {f"{name}{end}" for name in both for end in ("_step", "_epoch")} if of_epoch else both
    shown = (name for name in values if name not in hidden)
    texts = ((name, format(values[name], form) if form else number(values[name])) for name in shown)
    return delimiter.join(f"{name}={text}" for name, text in texts)


def number(value: float) -> str:
    """Four significant digits, in a width that changes little."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.4g}"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:#.4g}".rstrip(".")
    return f"{value:.3e}"


def rate_text(per_second: float) -> str:
    """`17.3 it/s`, or `2.1 s/it` for slow steps.

    Args:
        per_second: Iterations per second; 0 if unknown.
    """
    if per_second <= 0:
        return "? it/s"
    if per_second >= 1:
        return f"{per_second:.3g} it/s" if per_second < 1000 else f"{per_second:.0f} it/s"
    return f"{1 / per_second:.3g} s/it"


class Pace:
    """Speed of iterations, and how long the rest takes at the average speed so far.

    The first iteration, which compiles and allocates, does not count. Time between `pause` and
    `resume` (validation) counts for the estimate and not for the speed.
    """

    def __init__(self) -> None:
        self.per_second = 0.0
        self._first: tuple[float, float] | None = None
        self._latest: tuple[float, float] = (0.0, 0.0)
        self._paused_at: float | None = None
        self._paused = 0.0

    def tick(self, done: float, now: float) -> None:
        """Takes a look at the counter.

        Args:
            done: Iterations so far.
            now: Time, in seconds.
        """
        working = now - self._paused
        if self._first is None:
            self._first = (done, now)
            self._latest = (done, working)
            return
        iterations, seconds = done - self._latest[0], working - self._latest[1]
        if iterations <= 0 or seconds <= 0:
            return
        speed = iterations / seconds
        known = self.per_second
        self.per_second = speed if not known else known + _SMOOTHING * (speed - known)
        self._latest = (done, working)

    def pause(self, now: float) -> None:
        """The iterations rest from here."""
        self._paused_at = now

    def resume(self, now: float) -> None:
        """They go on."""
        if self._paused_at is not None:
            self._paused += now - self._paused_at
            self._paused_at = None

    def seconds_left(self, remaining: float, now: float) -> float:
        """Seconds for so many more iterations; inf if nothing is known.

        Args:
            remaining: Iterations to come, inf if unknown.
            now: Time, in seconds.
        """
        if self._first is None or self._latest[0] <= self._first[0]:
            return math.inf
        done, since = self._first
        return remaining * (now - since) / (self._latest[0] - done)
