"""Samplers: the order in which the indices of a dataset are read.

The samplers here are pure functions of (seed, epoch); `__iter__` counts the epoch up by itself.
"""

import itertools
import operator
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from ..errors import ArgumentError
from ..random import numpy_at

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """An order of indices: define `__iter__`, and `__len__` where it is known.

    A sampler of yours that draws random numbers should define `set_epoch(self, epoch)`, which the
    DataLoader calls before each epoch, and derive its numbers from the epoch.
    """

    def __init__(self, data_source: Any = None) -> None:
        del data_source  # PyTorch's older signature, which subclasses still call

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__(self).")


class EpochSampler(Sampler[Any]):
    """A sampler whose order is a function of (seed, epoch): define `order`.

    Args:
        generator: a minitorch Generator whose seed is used; None for the loader's or root seed.
    """

    def __init__(self, generator: Any = None) -> None:
        self.generator = generator
        self._epoch = 0
        seed_of(generator)

    @abstractmethod
    def order(self, epoch: int, seed: int | None = None) -> Any:
        """All indices of an epoch, as a range or an integer array."""

    def set_epoch(self, epoch: int) -> None:
        """Let the next `iter` give the order of this epoch."""
        self._epoch = checked_count("set_epoch: epoch", epoch, minimum=0)

    def __iter__(self) -> Iterator[Any]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        order = self.order(epoch, seed_of(self.generator))
        return iter(order if isinstance(order, range) else order.tolist())


class SequentialSampler(EpochSampler):
    """0, 1, …, n-1."""

    def __init__(self, data_source: Sized) -> None:
        super().__init__()
        self.data_source = data_source

    def order(self, epoch: int, seed: int | None = None) -> range:
        """All indices in order; epoch and seed do not matter."""
        return range(len(self.data_source))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(EpochSampler):
    """A random permutation, `numpy_at("shuffle", epoch).permutation(n)`, or draws with replacement.

    Args:
        data_source: what is sampled; only its length is used.
        replacement: draw each index independently.
        num_samples: how many to draw; all by default. More than n without replacement gives
            several permutations one after the other.
        generator: a minitorch Generator whose seed is used.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        super().__init__(generator)
        self.data_source = data_source
        self.replacement = checked_flag("RandomSampler: replacement", replacement)
        if num_samples is not None:
            num_samples = checked_count("RandomSampler: num_samples", num_samples)
        self._num_samples = num_samples

    @property
    def num_samples(self) -> int:
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def order(self, epoch: int, seed: int | None = None) -> np.ndarray:
        """The order of an epoch, int64 (num_samples,)."""
        rng = numpy_at("shuffle", epoch, seed=seed)
        n, wanted = len(self.data_source), self.num_samples
        if self.replacement:
            return rng.integers(n, size=wanted)
        if wanted == n:
            return rng.permutation(n)
        rounds = -(-wanted // n)
        return np.concatenate([rng.permutation(n) for _ in range(rounds)])[:wanted]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(EpochSampler):
    """A random permutation of the given indices."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        super().__init__(generator)
        self.indices = indices
        if np.ndim(indices) != 1:
            raise ArgumentError(
                "SubsetRandomSampler: indices must be a flat sequence of integers. "
                f"Got shape {np.shape(indices)}."
            )

    def order(self, epoch: int, seed: int | None = None) -> np.ndarray:
        """The order of an epoch, int64 (len(indices),)."""
        return numpy_at("shuffle", epoch, seed=seed).permutation(np.asarray(self.indices))

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(EpochSampler):
    """Draws index i with probability weights[i] / Σ weights.

    Args:
        weights: (n,), ≥ 0 and finite; they need not sum to one.
        num_samples: how many to draw.
        replacement: False draws no index twice in an epoch.
        generator: a minitorch Generator whose seed is used.
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        super().__init__(generator)
        self.weights = np.asarray(weights, np.float64)
        self.num_samples = checked_count("WeightedRandomSampler: num_samples", num_samples)
        self.replacement = checked_flag("WeightedRandomSampler: replacement", replacement)
        bad = ~(np.isfinite(self.weights) & (self.weights >= 0))
        if self.weights.ndim != 1 or bad.any() or not self.weights.sum() > 0:
            first = f", first at position {int(bad.argmax())}" if bad.any() else ""
            raise ArgumentError(
                "WeightedRandomSampler: weights must be a flat sequence of finite numbers ≥ 0 "
                f"with a positive sum. Got shape {self.weights.shape}, sum "
                f"{float(self.weights.sum())}, {int(bad.sum())} of them bad{first}."
            )
        usable = int(np.count_nonzero(self.weights))
        if not self.replacement and self.num_samples > usable:
            raise ArgumentError(
                "WeightedRandomSampler: without replacement num_samples must not exceed the number "
                f"of weights > 0. Got {self.num_samples} > {usable}. Use replacement=True."
            )

    def order(self, epoch: int, seed: int | None = None) -> np.ndarray:
        """The draws of an epoch, int64 (num_samples,)."""
        rng = numpy_at("shuffle", epoch, seed=seed)
        share = self.weights / self.weights.sum()
        return rng.choice(len(share), self.num_samples, replace=self.replacement, p=share)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[Any]]):
    """Groups the indices of a sampler into batches.

    Args:
        sampler: any iterable of indices.
        batch_size: samples a batch.
        drop_last: leave out a last batch that is smaller.
        spread_last: spread the remainder instead, so that the sizes of all ⌈n / batch_size⌉
            batches differ by at most one; needs a sampler with a length.
    """

    def __init__(
        self, sampler: Iterable[Any], batch_size: int, drop_last: bool, *, spread_last: bool = False
    ) -> None:
        self.sampler = sampler
        self.batch_size = checked_count("batch_size", batch_size)
        self.drop_last = checked_flag("drop_last", drop_last)
        self.spread_last = checked_flag("spread_last", spread_last)
        if drop_last and spread_last:
            raise ArgumentError("drop_last and spread_last exclude each other. Choose one.")
        if spread_last and not hasattr(sampler, "__len__"):
            raise ArgumentError(
                f"spread_last needs a sampler with a length; {type(sampler).__name__} has none. "
                "Define __len__(self)."
            )

    def __iter__(self) -> Iterator[list[Any]]:
        return (list(batch) for batch in self.split(iter(self.sampler)))

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def split(self, order: Any, start: int = 0) -> Iterator[Any]:
        """Cut an order into batches, from batch `start` on.

        Args:
            order: a range or array, whose slices are the batches, or an iterator of indices.
            start: batches to leave out at the beginning.
        """
        if isinstance(order, range | np.ndarray):
            return self._slices(order, start)
        if self.spread_last:
            return self._slices(np.fromiter(order, object, len(self.sampler)), start)  # type: ignore[arg-type]
        return itertools.islice(self._groups(iter(order)), start, None)

    def _slices(self, order: Any, start: int) -> Iterator[Any]:
        n, size = len(order), self.batch_size
        if self.spread_last:
            count = -(-n // size)
            for i in range(start, count):
                yield order[i * n // count : (i + 1) * n // count]
            return
        for first in range(start * size, n - n % size if self.drop_last else n, size):
            yield order[first : first + size]

    def _groups(self, order: Iterator[Any]) -> Iterator[list[Any]]:
        while batch := list(itertools.islice(order, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch


def checked_count(name: str, value: Any, *, minimum: int = 1) -> int:
    """`value` as an int that is at least `minimum`, or an ArgumentError."""
    try:
        if isinstance(value, bool) or operator.index(value) < minimum:
            raise TypeError
    except TypeError:
        raise ArgumentError(f"{name} must be an integer ≥ {minimum}. Got {value!r}.") from None
    return operator.index(value)


def checked_flag(name: str, value: Any) -> bool:
    """`value`, which must be True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False. Got {value!r}.")
    return value


def seed_of(generator: Any) -> int | None:
    """The seed of a minitorch Generator; None for None."""
    if generator is None:
        return None
    try:
        return int(generator.initial_seed())
    except AttributeError:
        raise ArgumentError(
            f"generator must be a minitorch.Generator. Got {type(generator).__name__}. "
            "Use minitorch.Generator().manual_seed(seed)."
        ) from None
