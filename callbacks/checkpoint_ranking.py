"""The best k checkpoints, as a list of paths and scores."""

from __future__ import annotations

import math
from typing import Any

from minitorch.callbacks.monitor import Mode, better


class Ranking:
    """The best k entries, best first; among equal scores the older one is better.

    Scores that are not finite never enter.

    Args:
        k: How many are kept: -1 for all, 0 for none.
        mode: "min" if lower scores are better, "max" if higher ones are.
    """

    def __init__(self, k: int, mode: Mode) -> None:
        self.k = k
        self.mode = mode
        self.entries: list[tuple[str, float]] = []

    def admits(self, score: float) -> bool:
        """Whether an entry with this score would be kept."""
        if not math.isfinite(score) or self.k == 0:
            return False
        if self.k == -1 or len(self.entries) < self.k:
            return True
        return better(score, self.entries[-1][1], self.mode)

    def displaced_by(self, score: float) -> str | None:
        """The path that leaves when this score enters."""
        full = self.k > 0 and len(self.entries) >= self.k
        return self.entries[-1][0] if full and self.admits(score) else None

    def add(self, path: str, score: float) -> None:
        """Enters a path at its place, and drops the one that it displaces."""
        if self.displaced_by(score) is not None:
            self.entries.pop()
        place = len(self.entries)
        while place and better(score, self.entries[place - 1][1], self.mode):
            place -= 1
        self.entries.insert(place, (path, score))

    @property
    def best(self) -> tuple[str, float] | None:
        """Path and score of the best entry."""
        return self.entries[0] if self.entries else None

    def __contains__(self, path: Any) -> bool:
        return any(path == known for known, _ in self.entries)
