"""Evaluation in a group of processes: each takes its part of the samples, none twice, and the
metrics are exact over all of them."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from minitorch.data.samplers import BatchSampler
from minitorch.errors import DataError, TrainerError

if TYPE_CHECKING:
    from minitorch.callbacks.core.metric import Metric
    from minitorch.callbacks.core.metric_objects import MetricObjects

_GROUP = "minitorch.distributed.group"


def place() -> tuple[int, int]:
    """The number of this process and how many there are; (0, 1) without a group."""
    group = sys.modules.get(_GROUP)
    return (0, 1) if group is None else (group.get_rank(), group.get_world_size())


def in_group() -> bool:
    """Whether several processes evaluate together."""
    return place()[1] > 1


def refuse(stage: str) -> None:
    """Raises for what one process has to do.

    Raises:
        TrainerError: `stage` is "fit" or "predict", in a group.
    """
    if stage in ("fit", "predict") and in_group():
        raise TrainerError(
            f"Trainer.{stage}: only validate and test work in several processes. Got a group of "
            f"{place()[1]}. Call {stage} before distributed.init_process_group, or in a process "
            "without a group."
        )


def first_alone(call: Callable[[], Any]) -> None:
    """Calls in the first process while the others wait, which find on disk what it made."""
    if place()[0] == 0:
        call()
    if in_group():
        from minitorch.distributed import barrier

        barrier()


class _Dealt:
    """Every n-th of the user's indices or batches, from a rank on: none twice, none left out."""

    def __init__(self, source: Iterable[Any], rank: int, ranks: int) -> None:
        self.source, self.rank, self.ranks = source, rank, ranks

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self.source), self.rank, None, self.ranks)

    def __len__(self) -> int:
        return len(range(self.rank, len(self.source), self.ranks))  # type: ignore[arg-type]

    def set_epoch(self, epoch: int) -> None:
        """Passes the epoch on to a sampler that wants it."""
        if hasattr(self.source, "set_epoch"):
            self.source.set_epoch(epoch)


def deal(loader: Any, name: str) -> Any:
    """The part of a loader that this process evaluates; all of it without a group.

    Raises:
        DataError: The loader is a stream, has its own DistributedSampler (which repeats samples),
            or has fewer samples than there are processes.
    """
    from minitorch.data import DataLoader, DistributedSampler, IterableDataset

    rank, ranks = place()
    if ranks == 1:
        return loader
    rule = f"{name}: the Trainer deals samples to {ranks} processes so that each counts once."
    if isinstance(getattr(loader, "sampler", None), DistributedSampler):
        raise DataError(
            f"{rule} Got a DistributedSampler, which repeats some. Pass the loader without it."
        )
    if not hasattr(loader, "__len__") or isinstance(getattr(loader, "dataset", 0), IterableDataset):
        raise DataError(
            f"{rule} Got a {type(loader).__name__} without a length. Evaluate it in one process."
        )
    plain = type(getattr(loader, "batch_sampler", None)) is BatchSampler
    dealt = _Dealt(loader.batch_sampler.sampler if plain else loader, rank, ranks)
    if isinstance(loader, DataLoader) and not plain:
        dealt = _Dealt(loader.batch_sampler or loader.sampler, rank, ranks)
    if not len(dealt):
        raise DataError(
            f"{rule} Got {len(dealt.source)} for them. Use fewer processes."  # type: ignore[arg-type]
        )
    if not isinstance(loader, DataLoader):
        return dealt
    return loader.with_order(dealt, of_batches=loader.batch_sampler is not None and not plain)


# Metrics.


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
    joined = None
    for state in states:
        one = copy.copy(mine.measured)
        one.load_state_dict(state)
        joined = one if joined is None else joined.merge(one)
    return joined


def _join_objects(mine: Any, parts: list[dict[str, Any] | None]) -> None:
    mine.reset()
    for part in parts:
        if part is not None:
            other = mine.clone()
            other.load_state_dict(part)
            mine.merge(other)


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
