"""Datasets and functions that the loader tests use; spawned workers import them from here."""

import os
import random
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from minitorch.data import Dataset, IterableDataset, default_collate, get_worker_info


class Squares(Dataset[Any]):
    """Sample i is (i, i²)."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.n:
            raise IndexError(index)
        return index, index * index


class Noisy(Squares):
    """Sample i is (i, a random number)."""

    def __getitem__(self, index: int, *, rng: np.random.Generator) -> Any:  # type: ignore[override]
        return index, int(rng.integers(2**40))


class GloballyNoisy(Squares):
    def __getitem__(self, index: int) -> Any:
        import minitorch

        drawn = minitorch.randint(0, 2**20, (1,)).item()
        return index, random.randrange(2**20), int(np.random.randint(2**20)), drawn


class Failing(Squares):
    def __init__(self, n: int, bad: int, error: BaseException) -> None:
        super().__init__(n)
        self.bad = bad
        self.error = error

    def __getitem__(self, index: int) -> Any:
        if index == self.bad:
            raise self.error
        return index


class StrangeError(Exception):
    """Pickles, but does not unpickle."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


class FailingStrangely(Squares):
    def __getitem__(self, index: int) -> Any:
        raise StrangeError("a", "b")


class Dying(Squares):
    def __getitem__(self, index: int) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Hanging(Squares):
    """Waits for ever at index 1, or until `release` is set where it has one."""

    release: threading.Event | None = None

    def __getitem__(self, index: int) -> Any:
        if index == 1:
            (self.release or threading.Event()).wait()
        return index


class Place(Squares):
    """Sample i is (i, worker, workers, epoch)."""

    def __getitem__(self, index: int) -> Any:
        info = get_worker_info()
        assert info is not None
        assert info.dataset is self
        return index, info.id, info.num_workers, info.epoch


class Pid(Squares):
    def __getitem__(self, index: int) -> Any:
        return os.getpid()


class Unpicklable(Squares):
    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.transform = lambda x: x


class BreaksWhenLoaded(Squares):
    def __setstate__(self, state: Any) -> None:
        raise OSError("the file is not there")


class Words(Dataset[Any]):
    """Indexed by words."""

    def __getitem__(self, word: str, *, rng: np.random.Generator) -> Any:
        return word, int(rng.integers(2**40))

    def __len__(self) -> int:
        return 4


class Plain(IterableDataset[Any]):
    """0 … n-1, in one stream."""

    def __init__(self, n: int, num_shards: int | None = None) -> None:
        self.n = n
        self.num_shards = num_shards

    def __iter__(self) -> Iterator[Any]:
        return iter(range(self.n))


class Sharded(Plain):
    """0 … n-1, each shard yields its residue class."""

    def __iter__(self, *, shard: int, num_shards: int) -> Iterator[Any]:  # type: ignore[override]
        return iter(range(shard, self.n, num_shards))


class NoisyStream(Sharded):
    def __iter__(  # type: ignore[override]
        self, *, shard: int, num_shards: int, epoch: int, rng: np.random.Generator
    ) -> Iterator[Any]:
        for i in range(shard, self.n, num_shards):
            yield i, epoch, int(rng.integers(2**40))


class SelfSplitting(Plain):
    """Splits itself as PyTorch's documentation shows."""

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        if info is None:
            yield from range(self.n)
        else:
            yield from range(info.id, self.n, info.num_workers)


class FailingStream(Plain):
    def __iter__(self) -> Iterator[Any]:
        yield from range(self.n)
        raise KeyError("torn tape")


def stringy(samples: list[Any]) -> Any:
    """A collate function of a user."""
    return [str(sample) for sample in samples]


def lambdas(samples: list[Any]) -> Any:
    """A collate function whose batch cannot be pickled."""
    return lambda: samples


def init_fails(worker: int) -> None:
    raise LookupError(f"no licence for {worker}")


def doubled(samples: list[Any]) -> Any:
    return default_collate([2 * sample for sample in samples])


def plain(batch: Any) -> Any:
    """A batch as nested lists of Python numbers, for comparison."""
    if hasattr(batch, "tolist"):
        return batch.tolist()
    if isinstance(batch, list | tuple):
        return [plain(part) for part in batch]
    return batch


def loader_threads() -> list[str]:
    """Names of the worker threads that are alive."""
    return [t.name for t in threading.enumerate() if t.name.startswith("minitorch-data")]
