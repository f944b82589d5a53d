"""Where the time of a run goes: by event, by callback and by part of the step."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.trainer.status import Status

NAMES = ("simple", "advanced", "ops", "pytorch")
"""What `Trainer(profiler=...)` takes as a text; "pytorch" means "ops"."""


class Profiler:
    """Base of profilers: derive from it and write `start`, `stop` and `summary`.

    Args:
        dirpath: Folder for the summary; default the run's log folder.
        filename: Write the summary to `dirpath/STAGE-FILENAME.txt`; without one it is printed.

    Attributes:
        synchronize: Waits for the device; set on a GPU, whose work goes on after a call returns.
    """

    def __init__(
        self, dirpath: str | os.PathLike[str] | None = None, filename: str | None = None
    ) -> None:
        self.dirpath = dirpath
        self.filename = filename
        self.synchronize: Callable[[], None] | None = None

    def start(self, action_name: str) -> None:
        """A named part begins."""
        raise NotImplementedError(f"{type(self).__name__} must override start()")

    def stop(self, action_name: str) -> None:
        """It is over."""
        raise NotImplementedError(f"{type(self).__name__} must override stop()")

    def summary(self) -> str:
        """What was measured, as text."""
        raise NotImplementedError(f"{type(self).__name__} must override summary()")

    @contextlib.contextmanager
    def profile(self, action_name: str) -> Iterator[str]:
        """Measures a part of the user's own: `with self.trainer.profiler.profile("decode"):`."""
        self.start(action_name)
        try:
            yield action_name
        finally:
            if self.synchronize is not None:
                self.synchronize()  # or the time of this part shows up in another one
            self.stop(action_name)

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, measured under `name`."""

        def timed_call(*args: Any, **kwargs: Any) -> Any:
            with self.profile(name):
                return call(*args, **kwargs)

        return timed_call

    def setup(self, trainer: Status, stage: str) -> None:
        """A run begins."""

    def teardown(self, trainer: Status, stage: str) -> None:
        """A run is over, whatever happened: prints or writes the summary."""
        self.describe(trainer, stage)

    def describe(self, trainer: Status, stage: str) -> None:
        """Prints the summary, or writes it where `filename` says; one process of several does."""
        if not trainer.is_global_zero:
            return
        if self.filename is None:
            trainer.print(self.summary())
            return
        path = self.path(trainer, f"{stage}-{self.filename}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.summary() + "\n")

    def path(self, trainer: Status, name: str) -> str:
        """Path of a file in the folder, which is made."""
        folder = os.fspath(self.dirpath or trainer.log_dir)
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, name)


class SimpleProfiler(Profiler):
    """Adds up the wall time of named calls; `Trainer(profiler="simple")` prints its table.

    Args:
        dirpath, filename: See `Profiler`.
        extended: Also show calls and shares.
    """

    def __init__(
        self,
        dirpath: str | os.PathLike[str] | None = None,
        filename: str | None = None,
        extended: bool = True,
    ) -> None:
        super().__init__(dirpath, filename)
        self.extended = extended
        self._totals: dict[str, list[float]] = {}
        self._open: dict[str, list[float]] = {}
        self._started = time.perf_counter()

    def start(self, action_name: str) -> None:
        """A named part begins."""
        self._open.setdefault(action_name, []).append(time.perf_counter())

    def stop(self, action_name: str) -> None:
        """It is over."""
        entry = self._totals.setdefault(action_name, [0.0, 0.0])
        entry[0] += time.perf_counter() - self._open[action_name].pop()
        entry[1] += 1

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
        columns = ["total s", "calls", "ms/call", "share"]
        shown = range(4) if self.extended else (0, 2)
        lines = [f"{'part':<{width}}" + "".join(f"  {columns[i]:>9}" for i in shown)]
        for name, seconds, calls in rows:
            cells = [f"{seconds:.3f}", str(calls), f"{1000 * seconds / calls:.3f}"]
            cells.append(f"{seconds / run_seconds:.1%}")
            lines.append(f"{name:<{width}}" + "".join(f"  {cells[i]:>9}" for i in shown))
        lines.append(f"{'run':<{width}}  {run_seconds:9.3f}")
        return "\n".join(lines)


def make(given: Any) -> Any:
    """The profiler that the Trainer's argument means; None for none."""
    if given == "advanced":
        from minitorch.trainer.advanced_profiler import AdvancedProfiler

        return AdvancedProfiler()
    if given in ("ops", "pytorch"):
        from minitorch.trainer.ops_profiler import OpsProfiler

        return OpsProfiler()
    return SimpleProfiler() if given == "simple" else given


def begin(profiler: Any, trainer: Status, stage: str) -> None:
    """Tells a profiler that a run begins; an object may do without the method."""
    if hasattr(profiler, "setup"):
        profiler.setup(trainer, stage)


def end(profiler: Any, trainer: Status, stage: str) -> None:
    """Lets a profiler show what it measured."""
    if hasattr(profiler, "teardown"):
        profiler.teardown(trainer, stage)
    elif profiler is not None:
        trainer.print(profiler.summary())
