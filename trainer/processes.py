"""Evaluation in a group of processes: each takes its part of the samples, none twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from minitorch.data.samplers import BatchSampler
from minitorch.errors import DataError, TrainerError
from minitorch.ranks import in_group, place


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
