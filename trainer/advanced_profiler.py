"""AdvancedProfiler: the functions inside of each part of a run, by Python's cProfile."""

from __future__ import annotations

import cProfile
import io
import os
import pstats
import re
from typing import TYPE_CHECKING

from minitorch.trainer.profiler import Profiler

if TYPE_CHECKING:
    from minitorch.trainer.status import Status


class AdvancedProfiler(Profiler):
    """Which functions the parts of a run spend their time in; `Trainer(profiler="advanced")`.

    A part that runs inside of another one is measured by itself and not in the outer one. Calls
    cost about twice as much as without it.

    Args:
        dirpath, filename: See `Profiler`.
        line_count_restriction: Functions shown for each part: a number, or a share of all.
        dump_stats: Also write `FILENAME-PART.prof` for each part, for viewers of cProfile's files.
    """

    def __init__(
        self,
        dirpath: str | os.PathLike[str] | None = None,
        filename: str | None = None,
        line_count_restriction: float = 1.0,
        dump_stats: bool = False,
    ) -> None:
        super().__init__(dirpath, filename)
        self.line_count_restriction = line_count_restriction
        self.dump_stats = dump_stats
        self._parts: dict[str, cProfile.Profile] = {}
        self._open: list[str] = []

    def start(self, action_name: str) -> None:
        """A part begins; one around it rests."""
        if self._open:
            self._parts[self._open[-1]].disable()
        self._open.append(action_name)
        self._parts.setdefault(action_name, cProfile.Profile()).enable()

    def stop(self, action_name: str) -> None:
        """It is over."""
        self._parts[self._open.pop()].disable()
        if self._open:
            self._parts[self._open[-1]].enable()

    def summary(self) -> str:
        """For each part its functions, those with the longest time below them first."""
        found = []
        for name, part in self._parts.items():
            text = io.StringIO()
            stats = pstats.Stats(part, stream=text).strip_dirs().sort_stats("cumulative")
            stats.print_stats(self.line_count_restriction)
            found.append(f"Profile of {name}\n{text.getvalue().strip()}")
        return "\n\n".join(found)

    def teardown(self, trainer: Status, stage: str) -> None:
        """Shows the summary, and writes the files of the parts."""
        super().teardown(trainer, stage)
        if self.dump_stats:
            for name, part in self._parts.items():
                place = re.sub(r"[^\w.-]+", "_", name).strip("_")
                part.dump_stats(self.path(trainer, f"{self.filename or stage}-{place}.prof"))
