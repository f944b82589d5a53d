"""What a fit returns."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule

History = dict[str, list[tuple[int, float]]]
Ending = Literal["completed", "stopped", "failed", "interrupted"]
_CHECK = re.compile(r" \[([a-z]+(?:-[a-z]+)*)\]$")  # the id behind the warning of a check


@dataclass(frozen=True)
class Checkpoint(os.PathLike[str]):
    """A checkpoint file; usable wherever a path is.

    Attributes:
        path: The file.
        monitor: Name of the metric that chose it, if one did.
        score: The metric's value, computed with exactly these weights.
    """

    path: str
    monitor: str | None = None
    score: float | None = None

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class FitResult:
    """How a fit ended and what it left behind.

    Attributes:
        status: "completed" (a limit of epochs, steps or time was reached), "stopped" (a callback
            or the user's code asked for it), "failed" (a watched value is not finite or passed its
            limit) or "interrupted" (Ctrl-C, SIGTERM).
        reason: One sentence saying why it ended.
        best: The best checkpoint by its monitor, or None without a ModelCheckpoint that has one;
            the module itself in a fast_dev_run, which writes nothing.
        last: The checkpoint of the final state, or the module itself if none was written.
        history: For each logged name the points (global_step, value), as loggers received them:
            step values every `log_every_n_steps` updates, epoch values once per epoch.
        epochs: Finished epochs.
        global_step: Optimizer updates.
        skipped: How many batches, updates and epochs were left out on purpose, by reason.
        warnings: What went wrong without ending the run, such as a logger that was dropped.
    """

    status: Ending
    reason: str
    best: Checkpoint | TaskModule | None
    last: Checkpoint | TaskModule
    history: History = field(repr=False)
    epochs: int
    global_step: int
    warnings: tuple[str, ...] = ()
    skipped: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.status} after {self.epochs} epochs, {self.global_step} updates"]
        lines[0] += f": {self.reason}"
        if isinstance(self.best, Checkpoint):
            lines.append(f"best: {self.best.monitor}={self.best.score} in {self.best.path}")
        if isinstance(self.last, Checkpoint):
            lines.append(f"last: {self.last.path}")
        lines += [f"skipped {count} times: {reason}" for reason, count in self.skipped.items()]
        told = [(text, _CHECK.search(text)) for text in self.warnings]
        lines += [text for text, check in told if not check]
        if checks := [check[1] for _, check in told if check]:
            lines.append(f"warned of: {', '.join(checks)} (the texts are in .warnings)")
        return "\n".join(lines)
