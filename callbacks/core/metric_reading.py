"""What is read of logged values: the latest ones, and the aggregates of finished epochs."""

from __future__ import annotations

from minitorch.callbacks.core.metric import Final, Metric, Scope
from minitorch.callbacks.core.metric_state import Table, keys


class MetricReading:
    """The part of `MetricLog` that asks and changes nothing.

    Attributes:
        scope: What may be logged at this moment; None for nothing.
    """

    def __init__(self) -> None:
        self.scope: Scope | None = None
        self._tables: dict[str, Table] = {}
        self._alone: dict[str, Table] | None = None
        self._phase = ""
        self._epoch_start = 0

    def _seen(self) -> dict[str, Table]:
        return self._tables if self._alone is None else self._alone

    def results(self) -> dict[str, float]:
        """All latest values by name; during an epoch's end also its aggregates."""
        found: dict[str, float] = {}
        for phase, table in self._seen().items():
            for name, metric in table.items():
                self._read(name, metric, running=phase == self._phase, into=found)
        return found

    def _read(self, name: str, metric: Metric, *, running: bool, into: dict[str, float]) -> None:
        step = metric.latest() if metric.on_step else None
        epoch = metric.epoch_value
        if metric.on_epoch and running and self._at_epoch_end():
            aggregate = metric.aggregate()
            epoch = epoch if aggregate is None else aggregate
        if step is not None:
            into[metric.step_key] = step
        if epoch is not None and metric.on_epoch:
            into[metric.epoch_key] = epoch
        if metric.step_key != metric.epoch_key and not metric.implied:
            plain = epoch if metric.closed or step is None or self._at_epoch_end() else step
            if plain is not None:
                into[name] = plain

    def _at_epoch_end(self) -> bool:
        return self.scope is not None and not self.scope.steps

    def bar(self, *, current: bool = False) -> dict[str, float]:
        """Latest values of what was logged with prog_bar=True.

        Args:
            current: Without validations of earlier epochs.
        """
        found: dict[str, float] = {}
        for phase, table in self._seen().items():
            for name, metric in table.items():
                old = current and phase == "validation" and metric.step <= self._epoch_start
                if metric.to_bar and not old:
                    self._read(name, metric, running=True, into=found)
                    if metric.implied:
                        found.pop(metric.epoch_key, None)
        return found

    def epoch_results(self, phase: str) -> dict[str, float]:
        """The aggregates of the last finished epoch of a phase."""
        return {
            metric.epoch_key: metric.epoch_value
            for metric in self._seen().get(phase, {}).values()
            if metric.closed and metric.epoch_value is not None
        }

    def finished(self, name: str) -> Final | None:
        """The aggregate of the last finished epoch under a name; None while a newer one grows.

        A name that both phases aggregate means validation.
        """
        for metric in self._named(name):
            if metric.on_epoch and name in (metric.name, metric.epoch_key):
                value = metric.epoch_value if metric.closed else None
                return None if value is None else Final(value, metric.step, metric.stamp)
        return None

    def only_steps(self, name: str) -> bool:
        """Whether only values of single batches exist under a name."""
        found = self._named(name)
        return bool(found) and not any(
            metric.on_epoch and name in (metric.name, metric.epoch_key) for metric in found
        )

    def names(self) -> list[str]:
        """All names that were logged, with those that their aggregates have or will have."""
        tables = self._seen().values()
        return sorted(set().union(*(keys(m) for table in tables for m in table.values())))

    def _named(self, name: str) -> list[Metric]:
        tables = [self._seen().get(phase, {}) for phase in ("validation", "train")]
        return [m for table in tables for m in table.values() if name in keys(m)]
