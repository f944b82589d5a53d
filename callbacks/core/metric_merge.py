"""Metrics of an evaluation in a group of processes: exact over all of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.errors import TrainerError
from minitorch.ranks import place

if TYPE_CHECKING:
    from minitorch.callbacks.core.metric import Metric
    from minitorch.callbacks.core.metric_objects import MetricObjects


def merge(
    table: dict[str, Metric],
    objects: MetricObjects,
    pack: Callable[[Metric], dict[str, Any]],
    unpack: Callable[[str, dict[str, Any]], Metric],
) -> None:
    """Makes the table of every process that of all of them, in the order of their numbers.

    Args:
        table: What this process logged in the epoch.
        objects: The metric objects of its task.
        pack, unpack: From a metric to its state, and back.

    Raises:
        TrainerError: A value that was computed by hand differs between the processes, or a metric
            object is not an attribute of the task.
    """
    from minitorch.distributed import all_gather_object

    states = {}
    for name, metric in table.items():
        states[name] = pack(metric)
        if metric.source is not None and states[name]["source"] is None:
            raise TrainerError(
                f"log({name!r}): processes merge metric objects by the attribute that holds them. "
                "Got one that is no attribute of the task. Keep it as self.metric."
            )
    paths = {s["source"] for s in states.values() if s["source"] is not None}
    kept = {path: objects.found[path].state_dict() for path in paths}
    everyone: list[Any] = [None] * place()[1]
    all_gather_object(everyone, (states, kept))
    for path in {path for _, theirs in everyone for path in theirs}:
        _join_objects(objects.found[path], [theirs.get(path) for _, theirs in everyone])
    for name in dict.fromkeys(name for theirs, _ in everyone for name in theirs):
        parts = [theirs[name] for theirs, _ in everyone if name in theirs]
        measured = _join_measured(name, table.get(name), parts)
        metric = table[name] = unpack(name, parts[0])
        if measured is not None:
            metric.measure(measured, whole=True)
        _check_by_hand(metric, parts)
        for part in parts[1:]:
            metric.join(part["total"], part["count"])
        metric.source = objects.found.get(parts[0]["source"])


def refuse_late(metric: Metric) -> None:
    """Raises for a value that comes after `merge`: it would be that of one process.

    Raises:
        TrainerError: Names the value, and when it can be logged.
    """
    raise TrainerError(
        f"log({metric.name!r}): in a group of processes values are merged once, at the end of an "
        "evaluation's epoch. Got one after that, of this process only. Log it in the batches' "
        "step, in the task's on_validation_epoch_end or on_test_epoch_end, or in a callback with "
        "an order before Order.REPORT."
    )


def _join_measured(name: str, mine: Metric | None, parts: list[dict[str, Any]]) -> Any:
    """One metric with the batches of all processes whose results were logged under a name."""
    states = [part["waiting"]["state"] for part in parts if part.get("waiting")]
    if not states:
        return None
    if mine is None or mine.measured is None:
        raise TrainerError(
            f"log({name!r}): every process logs results of the metric, or none does. Got some "
            "from others only. Log it in every batch."
        )
    first, *others = (copy.copy(mine.measured) for _ in states)
    for one, state in zip((first, *others), states, strict=True):
        one.load_state_dict(state)
    return first.merge(*others)


def _join_objects(mine: Any, parts: list[dict[str, Any] | None]) -> None:
    mine.reset()
    others = []
    for part in parts:
        if part is not None:
            others.append(mine.clone())
            others[-1].load_state_dict(part)
    mine.merge(*others)


def _check_by_hand(metric: Metric, parts: list[dict[str, Any]]) -> None:
    if metric.scope.steps or metric.source is not None:
        return
    values = {(part["total"], part["count"]) for part in parts}
    if len(values) > 1 and metric.reduce == "mean":
        raise TrainerError(
            f"log({metric.name!r}): what an epoch's end computes by hand covers the samples of one "
            f"process only. Got {', '.join(str(part['total']) for part in parts)} from the "
            "processes. Log it in the batches' step, or log a metric object of "
            "minitorch.metrics, which are merged exactly."
        )
