"""DataLoader: batches of a dataset, in an order that is arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from .. import random as mt_random
from ..errors import ArgumentError
from . import checks, plan
from .collate import default_collate, default_convert
from .dataset import IterableDataset, length_or_none, stream_keywords, takes_rng
from .fetch import Recipe, Signal
from .position import Position, checked_state
from .samplers import (
    BatchSampler,
    EpochSampler,
    RandomSampler,
    SequentialSampler,
    checked_count,
    seed_of,
)
from .workers import Workers

T_co = TypeVar("T_co", covariant=True)

_FIXED = frozenset(
    "dataset batch_size sampler batch_sampler drop_last num_workers worker_type collate_fn".split()
)


class Pass(Generic[T_co]):
    """One pass over a DataLoader: an iterator that tells its own position.

    Args:
        batches: the generator of batches.
        state: tells the position.
    """

    __slots__ = ("_batches", "_state", "close")

    def __init__(
        self, batches: Generator[T_co, None, None], state: Callable[[], dict[str, Any]]
    ) -> None:
        self._batches = batches
        self._state = state
        self.close = batches.close

    def __iter__(self) -> Pass[T_co]:
        return self

    def __next__(self) -> T_co:
        return next(self._batches)

    def state_dict(self) -> dict[str, Any]:
        """As `DataLoader.state_dict`, for this pass whatever else reads the loader."""
        return self._state()


class DataLoader(Generic[T_co]):
    """Batches of a dataset, shuffled, collated and read ahead by workers.

    The order is a function of (seed, epoch): with shuffle it is
    `numpy_at("shuffle", epoch, seed=seed).permutation(n)`. Each `iter` takes the next epoch unless
    `set_epoch` names one. Batches do not depend on the number or kind of workers, and
    `load_state_dict(state_dict())` goes on with exactly the next batch.

    Random numbers: take the keyword `rng` in `__getitem__` (see Dataset). The global generators of
    `random`, `numpy.random` and minitorch are seeded per batch in worker processes, but are shared
    by worker threads, where their numbers depend on timing.

    Args:
        dataset: with `__getitem__` and `__len__`, an IterableDataset, or one array or Tensor.
        batch_size: samples a batch; None hands out samples one by one.
        shuffle: read in a new random order each epoch.
        sampler: an order of indices in place of `shuffle`.
        batch_sampler: an order of lists of indices, in place of the four before and `drop_last`.
        num_workers: workers that read ahead; 0 reads in the consumer's thread.
        collate_fn: from a list of samples to a batch; `default_collate` by default.
        pin_memory: accepted; batches are ordinary host memory.
        drop_last: leave out a last batch that is smaller.
        timeout: most seconds to wait for a worker's batch; 0 for no limit.
        worker_init_fn: called with the worker's number when a worker starts.
        multiprocessing_context: None or "spawn".
        generator: a minitorch Generator whose seed is used in place of the root seed.
        prefetch_factor: batches that each worker reads ahead; 2 by default.
        persistent_workers: keep the workers between epochs; by default processes are kept (and
            started anew if the pickled dataset has changed), threads are not.
        pin_memory_device: accepted, as `pin_memory`.
        in_order: accepted; batches always come in their order.
        worker_type: "thread", or "process" for Python code that holds the interpreter lock.
        spread_last: spread a remainder over all batches, so that sizes differ by at most one.

    Raises:
        ArgumentError: an argument is outside of its rule, or two of them conflict.
        DataError: the dataset is empty, has no length, gives no batch, or shares a random
            generator between workers.

    >>> from minitorch.data import TensorDataset
    >>> x, y = mt.arange(6).reshape(3, 2), mt.arange(3)
    >>> loader = DataLoader(TensorDataset(x, y), batch_size=2)
    >>> next(iter(loader))
    [tensor([[0, 1],
            [2, 3]]), tensor([0, 1])]
    >>> position = loader.state_dict()  # of a loop that was left after one batch
    >>> loader.load_state_dict(position)
    >>> list(loader)
    [[tensor([[4, 5]]), tensor([2])]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool | None = None,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_type: str = "thread",
        spread_last: bool = False,
    ) -> None:
        self._ready = False
        self.dataset = dataset
        self.shuffle = bool(shuffle)
        self.order_is_named = (shuffle, sampler, batch_sampler) != (None, None, None)
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.drop_last = drop_last
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self.worker_type = worker_type
        self.spread_last = spread_last
        self._is_stream = isinstance(dataset, IterableDataset)
        checks.check_arguments(self, batch_size, shuffle, sampler, batch_sampler)
        self._choose_order(batch_size, sampler, batch_sampler)
        batched = self.batch_sampler is not None or (self._is_stream and batch_size is not None)
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        checks.check_data(self)
        self._workers = Workers(
            Recipe(dataset, self.collate_fn, batched, worker_init_fn),
            num_workers,
            kind=worker_type,
            ahead=prefetch_factor,
            timeout_seconds=timeout,
            keep=persistent_workers,
        )
        self._seed: int | None = None
        self._num_shards: int | None = None
        self._start = (0, 0)
        self._position: Position | None = None
        self._ready = True

    def shuffled(self) -> DataLoader[T_co]:
        """A loader like this one that shuffles; itself if its order was named or is a stream's."""
        if self.order_is_named or self._is_stream or type(self) is not DataLoader:
            return self
        return DataLoader(self.dataset, self.batch_size, True, **self._options())

    def with_order(self, order: Iterable[Any], *, of_batches: bool = False) -> DataLoader[T_co]:
        """A loader like this one with another sampler, or with another batch sampler."""
        options = self._options()
        if of_batches:
            del options["drop_last"], options["spread_last"]
            return DataLoader(self.dataset, batch_sampler=order, **options)
        return DataLoader(self.dataset, self.batch_size, sampler=order, **options)

    def _options(self) -> dict[str, Any]:
        names = (
            "num_workers collate_fn pin_memory drop_last timeout worker_init_fn generator "
            "multiprocessing_context prefetch_factor persistent_workers worker_type spread_last"
        )
        return {name: getattr(self, name) for name in names.split()}

    def _choose_order(self, batch_size: int | None, sampler: Any, batch_sampler: Any) -> None:
        self.sampler: Any = None
        self.batch_sampler: Any = None
        self.batch_size = batch_size
        if batch_sampler is not None:
            self.batch_sampler = batch_sampler
            self.batch_size = None
            self.sampler = getattr(batch_sampler, "sampler", None)
            self.drop_last = getattr(batch_sampler, "drop_last", False)
        elif not self._is_stream:
            if sampler is None and self.shuffle:
                sampler = RandomSampler(self.dataset, generator=self.generator)
            self.sampler = SequentialSampler(self.dataset) if sampler is None else sampler
            if batch_size is not None:
                self.batch_sampler = BatchSampler(
                    self.sampler, batch_size, self.drop_last, spread_last=self.spread_last
                )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and getattr(self, "_ready", False):
            raise ArgumentError(
                f"DataLoader: {name} cannot be changed after construction. Make a new DataLoader."
            )
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """Batches of an epoch; for a stream an estimate from its `__len__`.

        Raises:
            TypeError: the stream or the sampler has no length.
        """
        if not self._is_stream:
            return len(self.sampler if self.batch_sampler is None else self.batch_sampler)
        n = len(self.dataset)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Pass[T_co]:
        checks.check_length(self)
        epoch, batch = self._start
        self._start = (epoch + 1, 0)
        position = Position(epoch, batch, self._current_seed(), self._shards())
        self._position = position
        return Pass(self._hand_out(position), lambda: self._state(position))

    def set_epoch(self, epoch: int) -> None:
        """Let the next `iter` read this epoch.

        A position that `load_state_dict` has set inside of the same epoch stays.

        Args:
            epoch: number of the epoch, from 0.
        """
        epoch = checked_count("DataLoader.set_epoch: epoch", epoch, minimum=0)
        if self._start[0] != epoch:
            self._start = (epoch, 0)
        if self._position is not None and not self._position.live:
            self._position = None

    def state_dict(self) -> dict[str, Any]:
        """The position: epoch, batches handed out in it (not read ahead), and seed.

        It is that of the latest `iter`; each iterator has a `state_dict` of its own, for several
        loops over one loader. It is right at any moment, also inside of a loop. After a `break` it
        is the position where the loop was left. If the last batch is handed out, but the loop has
        not yet ended, a resumed loader gives an empty rest of the epoch and then goes on with the
        next one.
        """
        return self._state(self._position)

    def _state(self, position: Position | None) -> dict[str, Any]:
        epoch, batch = self._start if position is None else position.next_start()
        return {
            "epoch": epoch,
            "batch": batch,
            "seed": self._current_seed() if position is None else position.seed,
            "num_shards": self._shards() if position is None else position.num_shards,
            "batch_size": self._nominal_batch_size(),
            "length": self._length_or_none(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next `iter` go on with the batch after a saved position.

        The saved seed is used from now on, in place of that of the generator or the root seed.

        Args:
            state: what `state_dict` returned.

        Raises:
            DataError: it is no such state, or belongs to another batch size or dataset length.
        """
        order = self.sampler if self.batch_sampler is None else self.batch_sampler
        checked = checked_state(
            state,
            batch_size=self._nominal_batch_size(),
            length=self._length_or_none(),
            batches=None if self._is_stream else length_or_none(order),
        )
        self._seed = checked["seed"]
        self._num_shards = checked["num_shards"]
        self._start = (checked["epoch"], checked["batch"])
        self._position = None

    def _nominal_batch_size(self) -> int | None:
        return getattr(self.batch_sampler, "batch_size", self.batch_size)

    def _length_or_none(self) -> int | None:
        return length_or_none(
            self.dataset if self._is_stream or self.sampler is None else self.sampler
        )

    def _current_seed(self) -> int:
        sampler = self.sampler if isinstance(self.sampler, EpochSampler) else None
        own = (getattr(sampler, "generator", None), self.generator)
        seeds = [self._seed, *map(seed_of, own), mt_random.initial_seed()]
        return next(seed for seed in seeds if seed is not None)

    def _shards(self) -> int | None:
        if not self._is_stream:
            return None
        if "shard" not in stream_keywords(self.dataset):
            return 1
        return self._num_shards or self.dataset.num_shards or max(1, self.num_workers)

    def _hand_out(self, position: Position) -> Generator[T_co, None, None]:
        self._position = position
        position.live = True
        try:
            for batch in self._batches(position):
                position.batch += 1
                yield batch
            position.finished = True
        finally:
            position.live = False

    def _batches(self, position: Position) -> Iterator[T_co]:
        if not self._is_stream:
            for _, batch in self._workers.answers(partial(self._read_tasks, position), None):
                yield batch
            return
        ended: set[int] = set()
        tasks = partial(
            plan.stream_tasks,
            replace(position),
            ended,
            size=self.batch_size,
            drop_last=self.drop_last,
        )
        left = position.batch
        for task, answer in self._workers.answers(tasks, position.num_shards):
            if answer is Signal.ENDED:
                ended.add(task.shard)
            elif left:
                left -= 1
            else:
                yield answer

    def _read_tasks(self, position: Position, run: int) -> Iterator[Any]:
        counted = takes_rng(self.dataset)
        batches = plan.index_batches(
            self.sampler,
            self.batch_sampler,
            position.epoch,
            position.seed,
            0 if counted else position.batch,
        )
        make = plan.counted_read_tasks if counted else plan.read_tasks
        return make(batches, replace(position), run, batched=self.batch_sampler is not None)
