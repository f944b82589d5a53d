"""Reading one batch: the part of the loader that runs in the consumer's thread or in a worker."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..random import numpy_at
from .collate import collate, default_collate, wrap_arrays
from .dataset import IterableDataset, batch_taker, stream_keywords, takes_rng
from .worker_info import WorkerInfo, set_worker_info


@dataclass(frozen=True)
class Recipe:
    """What a worker needs to know once.

    Attributes:
        dataset: the dataset.
        collate_fn: from a list of samples (or one sample, without batching) to a batch.
        batched: False where samples are handed out one by one.
        worker_init_fn: called with the number of the worker when it starts.
    """

    dataset: Any
    collate_fn: Callable[[Any], Any]
    batched: bool
    worker_init_fn: Callable[[int], Any] | None


class ReadTask(NamedTuple):
    """Read the samples at `indices` (one index, without batching).

    `repeats[i]` says how often the epoch has had this index before.
    """

    run: int
    number: int
    epoch: int
    seed: int
    indices: Any
    repeats: list[int] | None


class StreamTask(NamedTuple):
    """Read the next `size` samples (None: one, without batching) of a shard."""

    run: int
    number: int
    epoch: int
    seed: int
    shard: int
    num_shards: int
    size: int | None
    drop_last: bool
    wanted: bool


class Signal(Enum):
    """Answers to a task that are no batch."""

    ENDED = "the shard has no further batch"
    SKIPPED = "the batch was read over"
    CANCELLED = "the run of this task is over"


class Worker(NamedTuple):
    """Number of a worker and how many there are."""

    id: int
    total: int


class Fetcher:
    """Calls with a task return a batch or a Signal.

    Args:
        recipe: what to read.
        worker: None in the consumer's thread.
        is_current: says of the number of a run whether its batches are still wanted.
    """

    def __init__(
        self,
        recipe: Recipe,
        worker: Worker | None = None,
        is_current: Callable[[int], bool] = lambda run: True,
    ) -> None:
        self.recipe = recipe
        self.worker = worker
        self.is_current = is_current
        self._streams: dict[int, _Stream] = {}
        if isinstance(recipe.dataset, IterableDataset):
            return
        self._takes_rng = takes_rng(recipe.dataset)
        usual = recipe.batched and recipe.collate_fn is default_collate and not self._takes_rng
        self._take = batch_taker(recipe.dataset) if usual else None
        many = getattr(recipe.dataset, "__getitems__", None)
        self._many = many if recipe.batched and not self._takes_rng else None

    def __call__(self, task: ReadTask | StreamTask) -> Any:
        if isinstance(task, StreamTask):
            return self._read_stream(task)
        if self.worker is not None:
            self._announce(self.worker, task)
        if self._take is not None:
            taken = self._take(task.indices)
            if taken is not NotImplemented:
                return wrap_arrays(taken)
        if not self.recipe.batched:
            samples = self._read(task, [task.indices])
            return self.recipe.collate_fn(samples[0]) if samples else Signal.CANCELLED
        indices = _listed(task.indices)
        samples = self._read(task, indices) if self._many is None else self._many(indices)
        return Signal.CANCELLED if samples is None else self._collate(samples, indices)

    def _read(self, task: ReadTask, indices: list[Any]) -> list[Any] | None:
        """The samples, or None if they are no longer wanted."""
        dataset, is_current, run = self.recipe.dataset, self.is_current, task.run
        samples: list[Any] = []
        try:
            for index in indices:
                if not is_current(run):
                    return None
                if self._takes_rng:
                    rng = _sample_rng(task, index, len(samples))
                    samples.append(dataset.__getitem__(index, rng=rng))
                else:
                    samples.append(dataset[index])
        except Exception as error:
            self._note(error, f"read index {indices[len(samples)]!r}")
            raise
        return samples

    def _collate(self, samples: Any, indices: list[Any]) -> Any:
        if self.recipe.collate_fn is default_collate:
            return collate(samples, indices)
        try:
            return self.recipe.collate_fn(samples)
        except Exception as error:
            more = ", …" if len(indices) > 8 else ""
            self._note(error, f"joined indices {', '.join(map(repr, indices[:8]))}{more}")
            raise

    def _read_stream(self, task: StreamTask) -> Any:
        if task.shard in self._streams and self._streams[task.shard].ended:
            return Signal.ENDED
        size = task.size or 1
        samples: list[Any] = []
        if self.worker is not None or task.num_shards > 1:
            self._announce(Worker(task.shard, task.num_shards), task)
        try:
            stream = self._stream(task)
            for sample in islice(stream.iterator, size):
                samples.append(sample)
                if not self.is_current(task.run):
                    return Signal.CANCELLED
        except Exception as error:
            read = self._streams[task.shard].count if task.shard in self._streams else 0
            self._note(error, f"read item {read + len(samples)} of shard {task.shard}")
            raise
        finally:
            if self.worker is None:
                set_worker_info(None)
        stream.count += len(samples)
        stream.ended = len(samples) < size
        if not samples or (task.drop_last and stream.ended):
            return Signal.ENDED
        if not task.wanted:
            return Signal.SKIPPED
        if task.size is None:
            return self.recipe.collate_fn(samples[0])
        return self._collate(samples, list(range(stream.count - len(samples), stream.count)))

    def _stream(self, task: StreamTask) -> "_Stream":
        if task.shard not in self._streams:
            self._streams[task.shard] = _Stream(self._open(task))
        return self._streams[task.shard]

    def _open(self, task: StreamTask) -> Iterator[Any]:
        dataset = self.recipe.dataset
        accepted = stream_keywords(dataset)
        offered = {"shard": task.shard, "num_shards": task.num_shards, "epoch": task.epoch}
        keywords: dict[str, Any] = {
            name: value for name, value in offered.items() if name in accepted
        }
        if "rng" in accepted:
            keywords["rng"] = numpy_at("stream", task.epoch, task.shard, seed=task.seed)
        return iter(dataset.__iter__(**keywords) if keywords else dataset)

    def _announce(self, place: Worker, task: ReadTask | StreamTask) -> None:
        info = WorkerInfo(
            place.id, place.total, (task.seed + place.id) % 2**64, self.recipe.dataset, task.epoch
        )
        set_worker_info(info)

    def _note(self, error: Exception, where: str) -> None:
        name = type(self.recipe.dataset).__name__
        worker = "" if self.worker is None else f" in worker {self.worker.id}"
        error.add_note(f"Raised while the DataLoader {where} of {name}{worker}.")


class _Stream:
    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator = iterator
        self.count = 0
        self.ended = False


def _listed(indices: Any) -> list[Any]:
    return indices.tolist() if isinstance(indices, np.ndarray) else list(indices)


def _sample_rng(task: ReadTask, index: Any, place: int) -> np.random.Generator:
    repeat = task.repeats[place] if task.repeats else 0
    try:
        return numpy_at("sample", task.epoch, index, repeat, seed=task.seed)
    except ValueError:  # an index that is no number ≥ 0: the place in the epoch has to do
        return numpy_at("sample place", task.epoch, task.number, place, seed=task.seed)
