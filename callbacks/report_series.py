"""Series of a report: kept within bounds while a run grows, and grouped into charts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Points = list[tuple[float, float]]

_PHASE = re.compile(
    r"(?:^|(?<=[/_.\-]))(train|training|val|valid|validation|test)(?=[/_.\-]|$)", re.I
)
_ENDS = re.compile(r"(?:/dataloader_idx_\d+|_step|_epoch)+$")
_PHASES = {"training": "train", "valid": "val", "validation": "val"}


class Thinned:
    """Points of a curve that grows: at most `limit`, spread evenly over the whole run.

    When it is full every second point goes and only every second new one is taken from then on.

    Args:
        limit: Points at most.
    """

    def __init__(self, limit: int = 1000) -> None:
        self.points: Points = []
        self._limit = limit
        self._every = 1
        self._seen = 0

    def add(self, x: float, y: float) -> None:
        """Takes a point, or leaves it out."""
        if self._seen % self._every == 0:
            self.points.append((x, y))
            if len(self.points) >= self._limit:
                self.points = self.points[::2]
                self._every *= 2
        self._seen += 1


def reduced(points: Points, limit: int = 600) -> Points:
    """At most about `limit` points of a curve, its extremes among them.

    Args:
        points: In the order of x; values that are not finite are kept as gaps.
        limit: Points at most, about.
    """
    if len(points) <= limit:
        return points
    size, kept = math.ceil(2 * len(points) / limit), []
    for start in range(0, len(points), size):
        part = points[start : start + size]
        finite = [i for i, (_, y) in enumerate(part) if math.isfinite(y)]
        if not finite:
            kept.append(part[0])
            continue
        low = min(finite, key=lambda i: part[i][1])
        high = max(finite, key=lambda i: part[i][1])
        kept += [part[i] for i in sorted({low, high})]
    if kept[-1] != points[-1]:
        kept.append(points[-1])
    return kept


class Curve(NamedTuple):
    """One line of a chart.

    Attributes:
        name: The metric.
        phase: "train", "val", "test" or "".
        points: (global_step, value).
        faint: Values of single batches beside those of epochs.
    """

    name: str
    phase: str
    points: Points
    faint: bool = False


def charts(history: Mapping[str, Iterable[tuple[float, float]]]) -> dict[str, list[Curve]]:
    """Metrics in groups that are compared: `train/loss` and `val_loss` share the chart "loss".

    Args:
        history: For each name its points.

    Returns:
        For each chart its curves; charts with losses first.
    """
    found: dict[str, list[Curve]] = {}
    for name, points in history.items():
        base = _ENDS.sub("", name)
        match = _PHASE.search(base)
        phase = "" if match is None else match[1].lower()
        title = base
        if match is not None:
            title = (base[: match.start()] + base[match.end() :]).strip("/_.- ") or base
            title = re.sub(r"([/_.\-])[/_.\-]+", r"\1", title)
        faint = name.endswith("_step") and f"{name[:-5]}_epoch" in history
        curve = Curve(name, _PHASES.get(phase, phase), list(points), faint)
        found.setdefault(title, []).append(curve)
    order = sorted(found, key=lambda title: ("loss" not in title.lower(), title.lower()))
    return {title: sorted(found[title], key=lambda c: not c.faint) for title in order}
