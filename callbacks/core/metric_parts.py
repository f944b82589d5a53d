"""Step values of a batch that runs in parts: what the whole batch would have logged."""

from __future__ import annotations

import copy
from typing import Any

from minitorch import backend
from minitorch.callbacks.core.metric import Metric, scalar


class MetricParts:
    """What the parts of a batch logged for the step, joined once the last one ran.

    Means are weighted by `batch_size`, or else by the samples of a part; sums, maxima and minima
    are those of the parts, and results of metrics are computed from all of them.
    """

    def __init__(self) -> None:
        self._number = 0
        self._samples = 0.0
        # By metric: (number of the part, value, weight, what a metric's result was measured by).
        self._found: dict[Metric, list[tuple[int, Any, float, Any]]] = {}

    def begin(self, samples: int) -> None:
        """The next part begins, with so many samples."""
        self._number += 1
        self._samples = float(samples)

    def take(self, metric: Metric, batch_size: float | None, measured: Any) -> None:
        """Takes the latest value of a metric; the last one of a part counts."""
        weight = self._samples if batch_size is None else batch_size
        values = self._found.setdefault(metric, [])
        if values and values[-1][0] == self._number:
            del values[-1]
        values.append((self._number, metric.value, weight, measured))

    def join(self) -> None:
        """Gives each metric the value of the batch."""
        for metric, parts in self._found.items():
            if len(parts) > 1:
                measured = [one[3] for one in parts]
                if all(measured) and metric.reduce == "mean":
                    metric.value = _measured(metric, measured)
                else:
                    metric.value = _joined(metric.reduce, [one[1:3] for one in parts])


def _measured(metric: Metric, parts: list[tuple[Any, bool]]) -> Any:
    """The value over the batches behind results; one of all batches so far has them already."""
    joined, whole = parts[-1]
    if whole:
        return metric.value
    joined = copy.copy(joined)
    joined.merge(*[part for part, _ in parts[:-1]])
    return scalar(metric.name, joined.compute())


def _joined(reduce: str, parts: list[tuple[Any, float]]) -> Any:
    """One value from those of the parts, without waiting for a GPU."""
    values = [value for value, _ in parts]
    if reduce == "mean":
        total = sum(weight for _, weight in parts)
        return sum(value * (weight / total) for value, weight in parts)
    if reduce == "sum":
        return sum(values)
    on_device = next((value for value in values if type(value) is not float), None)
    if on_device is None:
        bad = [value for value in values if value != value]
        return bad[0] if bad else (max(values) if reduce == "max" else min(values))
    xp = backend.of(on_device).xp
    held = xp.stack([xp.asarray(value, on_device.dtype) for value in values])
    return held.max() if reduce == "max" else held.min()
