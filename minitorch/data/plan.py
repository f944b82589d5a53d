"""What is to be read in an epoch, batch by batch: the tasks of a run."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from .fetch import ReadTask, StreamTask
from .position import Position
from .samplers import BatchSampler, EpochSampler


def read_tasks(
    batches: Iterator[Any], position: Position, run: int, *, batched: bool
) -> Iterator[ReadTask]:
    """The tasks after a position, from the batches of indices after it."""
    for number, indices in enumerate(batches, position.batch):
        yield ReadTask(run, number, position.epoch, position.seed, indices, None)


def counted_read_tasks(
    batches: Iterator[Any], position: Position, run: int, *, batched: bool
) -> Iterator[ReadTask]:
    """The tasks after a position, from all batches of the epoch.

    Each sample is told how often the epoch has had its index before, so that a sample that a
    sampler draws again is augmented in another way.
    """
    seen: Counter[Any] = Counter()
    start = position.batch
    for number, indices in enumerate(batches):
        each = indices.tolist() if isinstance(indices, np.ndarray) else indices
        repeats = [_repeat(seen, index) for index in (each if batched else [each])]
        if number >= start:
            yield ReadTask(run, number, position.epoch, position.seed, indices, repeats)


def _repeat(seen: Counter[Any], index: Any) -> int:
    try:
        before = seen[index]
        seen[index] = before + 1
    except TypeError:  # an index that cannot be a key, such as a list
        return 0
    return before


def stream_tasks(
    position: Position, ended: set[int], run: int, *, size: int | None, drop_last: bool
) -> Iterator[StreamTask]:
    """The tasks of a stream: the shards in turn, until all of them are in `ended`.

    The first `position.batch` tasks read over their batch: no more than that many batches can come
    from them.
    """
    shards = position.num_shards or 1
    for number in count():
        if len(ended) == shards:
            return
        shard = number % shards
        if shard not in ended:
            wanted = number >= position.batch
            yield StreamTask(
                run, number, position.epoch, position.seed, shard, shards, size, drop_last, wanted
            )


def index_batches(
    sampler: Any, batch_sampler: Any, epoch: int, seed: int, start: int
) -> Iterator[Any]:
    """The batches of indices (without a batch sampler, the indices) of an epoch from `start` on."""
    if batch_sampler is None:
        order = _order(sampler, epoch, seed)
        return islice(order.tolist() if isinstance(order, np.ndarray) else order, start, None)
    if type(batch_sampler) is BatchSampler:
        return batch_sampler.split(_order(batch_sampler.sampler, epoch, seed), start)
    return islice(_order(batch_sampler, epoch, seed), start, None)


def _order(sampler: Any, epoch: int, seed: int) -> Any:
    if isinstance(sampler, EpochSampler) and type(sampler).__iter__ is EpochSampler.__iter__:
        return sampler.order(epoch, seed)
    for part in (sampler, getattr(sampler, "sampler", None)):
        if callable(set_epoch := getattr(part, "set_epoch", None)):
            set_epoch(epoch)
    return iter(sampler)
