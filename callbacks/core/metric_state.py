"""Names of metrics, and their state in a checkpoint."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import minitorch
from minitorch import Tensor
from minitorch.callbacks.core.metric import SCOPES, Metric
from minitorch.errors import TrainerError

Table = dict[str, Metric]
Point = tuple[int, float]
Kept = list[tuple[Metric, tuple[Any, ...]]]


def as_tensors(values: dict[str, float]) -> dict[str, Tensor]:
    """The same values as 0-d float64 tensors."""
    return {name: minitorch.tensor(v, dtype=minitorch.float64) for name, v in values.items()}


def keys(metric: Metric) -> set[str]:
    """All names under which a metric can be read."""
    return {metric.name, metric.step_key, metric.epoch_key}


_PLAIN = ("epoch_value", "fresh", "closed", "stamp", "step", "total", "count")


def pack(metric: Metric) -> dict[str, Any]:
    """The state of a metric."""
    metric._collapse()
    state = {name: getattr(metric, name) for name in _PLAIN}
    flags = [getattr(flag, "__name__", flag) for flag in metric.flags]
    waiting = metric.waiting
    if metric.measured is not None:
        waiting = {"state": metric.measured.state_dict(), "value": metric.aggregate()}
    more = {"implied": metric.implied, "waiting": waiting, "value": metric.latest()}
    return {**state, "flags": flags, "scope": metric.scope.where, **more}


def unpack(name: str, state: dict[str, Any]) -> Metric:
    """The metric that `pack` saw."""
    metric = Metric(name, tuple(state["flags"]), SCOPES[state["scope"]])
    if not state.get("implied", True):
        metric.only_asked()
    for key in (*_PLAIN, "value"):
        setattr(metric, key, state[key])
    metric.waiting = state.get("waiting")
    return metric


def pack_window(kept: Kept) -> dict[str, Any]:
    """What the metrics were before their first value in the window that is open."""
    packed: dict[str, Any] = {}
    for metric, state in kept:
        if metric.name not in packed:
            before = copy.copy(metric)
            before.put_back(state)
            packed[metric.name] = pack(before)
    return packed


def unpack_window(packed: dict[str, Any], table: Table) -> Kept:
    """What `pack_window` saw, for the metrics of a table."""
    kept: Kept = []
    for name, state in packed.items():
        kept.append((table[name], unpack(name, state).kept()))
    return kept


def pack_history(history: dict[str, list[Point]], partial: dict[str, int]) -> dict[str, Any]:
    """The points of each name as two arrays, but those that an epoch that is still open gave."""
    packed: dict[str, Any] = {}
    for name, points in history.items():
        left_out = partial.get(name, len(points))
        kept = points[:left_out] + points[left_out + 1 :]
        if kept:
            steps, values = zip(*kept, strict=True)
            packed[name] = {
                "step": np.array(steps, np.int64),
                "value": np.array(values, np.float64),
            }
    return packed


def unpack_history(packed: dict[str, Any]) -> dict[str, list[Point]]:
    """The points that `pack_history` got."""
    return {
        name: list(zip(points["step"].tolist(), points["value"].tolist(), strict=True))
        for name, points in packed.items()
    }


def make_room(metric: Metric, tables: dict[str, Table], table: Table) -> None:
    """Raises if a name is taken; an aggregate that nobody asked for gives way."""
    for other in [m for one in tables.values() for m in one.values()]:
        if metric.epoch_key in keys(other) and metric.epoch_key != metric.name:
            metric.only_asked()
        if other.epoch_key in keys(metric) and other.epoch_key != other.name:
            other.only_asked()
    for other in table.values():
        if {metric.step_key, metric.epoch_key} & {other.step_key, other.epoch_key}:
            raise TrainerError(
                f"log({metric.name!r}): its values would be called {metric.step_key!r} and "
                f"{metric.epoch_key!r}, and one of these names is taken. Rename it."
            )
