"""Where the time goes: by event, by callback and by part of the step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class SimpleProfiler:
    """Adds up the wall time of named calls; `Trainer(profiler="simple")` prints its table.

    Attributes:
        synchronize: Waits for the device; set on a GPU, whose work goes on after a call returns.
    """

    def __init__(self) -> None:
        self._totals: dict[str, list[float]] = {}
        self._started = time.perf_counter()
        self.synchronize: Callable[[], None] | None = None

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, with its time added under `name`."""
        entry = self._totals.setdefault(name, [0.0, 0.0])
        clock = time.perf_counter

        def timed_call(*args: Any, **kwargs: Any) -> Any:
            start = clock()
            try:
                return call(*args, **kwargs)
            finally:
                if self.synchronize is not None:
                    self.synchronize()  # or the time of this call shows up in another one
                entry[0] += clock() - start
                entry[1] += 1

        return timed_call

    def summary(self) -> str:
        """A table, longest first: seconds in total, calls, milliseconds a call, share."""
        run_seconds = time.perf_counter() - self._started
        rows = [(name, t, int(n)) for name, (t, n) in self._totals.items() if n]
        rows.sort(key=lambda row: -row[1])
        width = max([len(name) for name, _, _ in rows], default=4)
        lines = [f"{'part':<{width}}  {'total s':>9}  {'calls':>8}  {'ms/call':>9}  {'share':>6}"]
        for name, seconds, calls in rows:
            lines.append(
                f"{name:<{width}}  {seconds:9.3f}  {calls:8d}  {1000 * seconds / calls:9.3f}  "
                f"{seconds / run_seconds:6.1%}"
            )
        lines.append(f"{'run':<{width}}  {run_seconds:9.3f}")
        return "\n".join(lines)
