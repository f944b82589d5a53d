"""Datasets: where samples come from, and the wrappers that combine them."""

import bisect
import functools
import inspect
import itertools
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ..errors import ArgumentError, DataError, describe
from .arrays import fits_tensor, is_array, raw, take_rows

T_co = TypeVar("T_co", covariant=True)

_SHARD_KEYWORDS = frozenset({"shard", "num_shards"})
_STREAM_KEYWORDS = _SHARD_KEYWORDS | {"epoch", "rng"}


class Dataset(Generic[T_co]):
    """Samples that are read by index: define `__getitem__` and `__len__`.

    A `__getitem__(self, index, *, rng)` that takes the keyword `rng` gets a NumPy generator from
    the DataLoader that depends on (seed, epoch, index) only: random augmentation is then the same
    for any number of workers and after a resume, and differs from epoch to epoch.

    A `take_batch(self, indices)` is an optional fast path: it returns the arrays (one, or a tuple)
    that stacking the samples of `indices` (an integer array or a range) would give, newly
    allocated, or NotImplemented.
    """

    @abstractmethod
    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__(self, index).")

    def __add__(self, other: "Dataset[Any]") -> "ConcatDataset":
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co]):
    """Samples that come as a stream: define `__iter__`.

    `__iter__` may take any of these keywords, which the DataLoader then passes:
    `shard, num_shards` (yield only the samples of this shard; needed for several workers to read
    the stream, otherwise one of them reads all of it), `epoch`, and `rng` (a NumPy generator that
    depends on seed, epoch and shard).

    Class attribute `num_shards`: set it to make the order of the batches independent of the
    number of workers; by default there are as many shards as workers.
    """

    num_shards: int | None = None

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__(self).")

    def __getitem__(self, index: Any) -> T_co:
        raise TypeError(f"{type(self).__name__} is a stream and has no index. Iterate over it.")

    def __add__(self, other: Dataset[Any]) -> "ChainDataset":  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Rows of tensors or NumPy arrays: sample i is `(tensors[0][i], tensors[1][i], …)`.

    Args:
        tensors: Tensors or arrays with the same first size; dtypes are kept as they are.

    Raises:
        DataError: sizes differ, a scalar came, or something that is no tensor or array.

    >>> data = TensorDataset(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1]))
    >>> len(data), data[1][0].tolist()
    (2, [3.0, 4.0])
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise DataError("TensorDataset: at least one tensor or array is needed. Got none.")
        for position, tensor in enumerate(tensors):
            if not is_array(tensor) or not tensor.shape:
                raise DataError(
                    "TensorDataset: each argument must be a Tensor or array with at least one "
                    f"dimension. Argument {position} is {describe(tensor)}. "
                    "Use numpy.asarray(...) for lists."
                )
            if not fits_tensor(raw(tensor)):
                raise DataError(
                    f"TensorDataset: argument {position} has dtype {tensor.dtype}, which no Tensor "
                    "can have. Convert it, for example with .astype('int64')."
                )
        if len({tensor.shape[0] for tensor in tensors}) > 1:
            raise DataError(
                "TensorDataset: the first sizes must be equal. "
                f"Got {', '.join(describe(tensor) for tensor in tensors)}."
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])

    def take_batch(self, indices: Any) -> tuple[Any, ...]:
        """The rows of `indices` of each array, copied with one NumPy call per array."""
        return tuple(take_rows(tensor, indices) for tensor in self.tensors)


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`, in that order."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        self.parts = (dataset,)
        self.wants_rng = takes_rng(dataset)

    def __getitem__(self, index: Any, *, rng: np.random.Generator | None = None) -> T_co:
        return read_sample(self.dataset, self.indices[index], rng)

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other.

    Args:
        datasets: Each has a length.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise DataError("ConcatDataset: at least one dataset is needed. Got an empty list.")
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise DataError(
                    f"ConcatDataset: {type(dataset).__name__} is a stream and has no index. "
                    "Use ChainDataset."
                )
        self.parts = tuple(self.datasets)
        self.wants_rng = any(map(takes_rng, self.parts))
        self.cumulative_sizes = list(itertools.accumulate(map(checked_len, self.datasets)))

    def __getitem__(self, index: Any, *, rng: np.random.Generator | None = None) -> Any:
        index = operator.index(index)
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"ConcatDataset: index {index} is outside of {len(self)} samples.")
        part = bisect.bisect_right(self.cumulative_sizes, place)
        first = self.cumulative_sizes[part - 1] if part else 0
        return read_sample(self.datasets[part], place - first, rng)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class StackDataset(Dataset[Any]):
    """Datasets side by side: sample i is a tuple (or dict, for keywords) of their samples i.

    Args:
        args: datasets of equal length, for tuples.
        kwargs: datasets of equal length, for dicts.
    """

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if bool(args) == bool(kwargs):
            raise DataError(
                "StackDataset: give datasets either by position or by keyword. "
                f"Got {len(args)} by position and {len(kwargs)} by keyword."
            )
        self.datasets: Any = kwargs or args
        self.parts = args or tuple(kwargs.values())
        self.wants_rng = any(map(takes_rng, self.parts))
        sizes = [checked_len(dataset) for dataset in self.parts]
        if len(set(sizes)) > 1:
            raise DataError(f"StackDataset: the lengths must be equal. Got {sizes}.")

    def __getitem__(self, index: Any, *, rng: np.random.Generator | None = None) -> Any:
        if isinstance(self.datasets, dict):
            return {k: read_sample(part, index, rng) for k, part in self.datasets.items()}
        return tuple(read_sample(part, index, rng) for part in self.datasets)

    def __len__(self) -> int:
        return len(self.parts[0])  # type: ignore[arg-type]


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other; shards where all of them do.

    Args:
        datasets: Streams; each ends before the next one begins.
    """

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        self.parts = tuple(self.datasets)
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise DataError(
                    f"ChainDataset: {type(dataset).__name__} is not an IterableDataset. "
                    "Use ConcatDataset for datasets with an index."
                )
        own = [stream_keywords(dataset) for dataset in self.datasets]
        sharded = all(own_keywords >= _SHARD_KEYWORDS for own_keywords in own)
        self.stream_keywords = frozenset().union(*own) - (set() if sharded else _SHARD_KEYWORDS)

    def __iter__(self, **keywords: Any) -> Iterator[Any]:
        for dataset in self.datasets:
            accepted = stream_keywords(dataset)
            yield from dataset.__iter__(**{k: v for k, v in keywords.items() if k in accepted})  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)  # type: ignore[arg-type,misc]


def length_or_none(sized: Any) -> int | None:
    """len(sized), or None where there is none."""
    try:
        return len(sized)
    except TypeError:
        return None


def checked_len(dataset: Any) -> int:
    """len(dataset), with an error that names what is missing."""
    try:
        return len(dataset)
    except TypeError:
        raise DataError(
            f"{type(dataset).__name__} has no length. Define __len__(self), or make it an "
            "IterableDataset with __iter__."
        ) from None


def read_sample(dataset: Any, index: Any, rng: np.random.Generator | None) -> Any:
    """Sample `index`; `rng` is passed where the dataset takes it."""
    if rng is not None and takes_rng(dataset):
        return dataset.__getitem__(index, rng=rng)
    return dataset[index]


def takes_rng(dataset: Any) -> bool:
    """Whether `__getitem__` takes the keyword `rng`.

    A dataset that only passes it on says by its attribute `wants_rng` whether there is a use.
    """
    return "rng" in _keywords(type(dataset), "__getitem__") and getattr(dataset, "wants_rng", True)


def stream_keywords(dataset: Any) -> frozenset[str]:
    """The keywords among shard, num_shards, epoch, rng that `__iter__` takes."""
    if isinstance(dataset, ChainDataset):
        return dataset.stream_keywords
    found = _keywords(type(dataset), "__iter__") & _STREAM_KEYWORDS
    if len(found & _SHARD_KEYWORDS) == 1:
        raise ArgumentError(
            f"{type(dataset).__name__}.__iter__ must take both of shard and num_shards, or "
            f"neither. It takes only {next(iter(found & _SHARD_KEYWORDS))}."
        )
    return found


def batch_taker(dataset: Any) -> Callable[[Any], Any] | None:
    """The function from an index array or range to arrays of a batch, where there is a fast path.

    `take_batch` does not count where a subclass replaces `__getitem__` below it.
    """
    if is_array(dataset):
        return functools.partial(take_rows, dataset) if fits_tensor(raw(dataset)) else None
    if isinstance(dataset, Subset) and type(dataset).__getitem__ is Subset.__getitem__:
        inner = batch_taker(dataset.dataset)
        rows = np.asarray(dataset.indices)
        return None if inner is None else lambda indices: inner(rows[_index(indices)])
    for cls in type(dataset).__mro__:
        if "take_batch" in vars(cls):
            return dataset.take_batch
        if "__getitem__" in vars(cls):
            return None
    return None


def _index(indices: Any) -> Any:
    return slice(indices.start, indices.stop) if type(indices) is range else indices


def _keywords(cls: type, method: str) -> frozenset[str]:
    return _parameters(getattr(cls, method, None))


@functools.cache
def _parameters(function: Any) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # no such method, or one written in C
        return frozenset()
