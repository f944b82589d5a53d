"""Data as the user gives it, turned into batches with a length, a limit and a position."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from minitorch.data.arrays import is_array
from minitorch.errors import DataError, describe

if TYPE_CHECKING:
    from minitorch.trainer.position import Position

END = object()
"""What comes after the last batch."""

ACCEPTED = (
    "a DataLoader, a Dataset, an iterable of batches, one array, or a tuple or dict of arrays "
    "of equal length"
)


def as_loader(source: Any, *, batch_size: int, shuffle: bool, name: str) -> Any:
    """An iterable of batches that can be iterated once per epoch.

    A tuple or dict of arrays, `(X, y)`, is one dataset whose batches have the same form; a list
    is an iterable of batches.

    Args:
        source: The user's data.
        batch_size: Samples per batch where the source is not batched yet.
        shuffle: New random order in each epoch where the source is not batched yet.
        name: Argument's name in messages.

    Raises:
        DataError: It is none of the accepted forms, empty, or can be read only once.
    """
    from minitorch.data import DataLoader, Dataset, IterableDataset, StackDataset, TensorDataset

    if isinstance(source, DataLoader):
        return source.shuffled() if shuffle else source
    if hasattr(source, "read_batches"):
        return source
    columns = _columns(source)
    if columns is not None:
        _check_columns(columns, name)
        if isinstance(source, tuple):
            source = TensorDataset(*source)
        elif isinstance(source, Mapping):
            source = StackDataset(**source)
        return DataLoader(source, batch_size, shuffle=shuffle)
    if isinstance(source, IterableDataset):
        return DataLoader(source, batch_size)
    if isinstance(source, Dataset):
        return DataLoader(source, batch_size, shuffle=shuffle)
    if holds_loaders(source):
        return _combined(source, batch_size=batch_size, shuffle=shuffle, name=name)
    if isinstance(source, Mapping):
        kinds = ", ".join(sorted({type(one).__name__ for one in source.values()})) or "nothing"
        raise DataError(
            f"{name}: data is {ACCEPTED}; also a list or dict of loaders and datasets. Got a "
            f"{type(source).__name__} of {kinds}. Make one iterable of batches."
        )
    if isinstance(source, str | bytes) or not isinstance(source, Iterable):
        raise DataError(f"{name}: data is {ACCEPTED}. Got {describe(source)}.")
    if isinstance(source, Iterator):
        raise DataError(
            f"{name}: data must be readable once per epoch. Got a {type(source).__name__}, which "
            "ends for good after one pass. Pass a list, a DataLoader, or an object whose __iter__ "
            "starts afresh."
        )
    return source


def _columns(source: Any) -> dict[str, Any] | None:
    if is_array(source):
        return {"data": source}
    if isinstance(source, tuple) and source and all(map(is_array, source)):
        return {f"[{i}]": column for i, column in enumerate(source)}
    named = isinstance(source, Mapping) and all(isinstance(key, str) for key in source)
    if named and source and all(map(is_array, source.values())):
        return {f"[{key!r}]": column for key, column in source.items()}
    return None


def _check_columns(columns: dict[str, Any], name: str) -> None:
    lengths = {key: (column.shape[0] if column.ndim else None) for key, column in columns.items()}
    if None in lengths.values() or len(set(lengths.values())) > 1:
        shapes = ", ".join(describe(column) for column in columns.values())
        raise DataError(f"{name}: arrays of one dataset must have equal lengths. Got {shapes}.")
    if not next(iter(lengths.values())):
        raise DataError(f"{name}: there must be at least one sample. Got arrays of length 0.")


def holds_loaders(source: Any) -> bool:
    """Whether it is a list, tuple or dict with DataLoaders or Datasets in it."""
    from minitorch.data import DataLoader, Dataset

    if not isinstance(source, list | tuple | Mapping):
        return False
    held = source.values() if isinstance(source, Mapping) else source
    return any(isinstance(one, DataLoader | Dataset) or holds_loaders(one) for one in held)


def _combined(source: Any, *, batch_size: int, shuffle: bool, name: str) -> Any:
    """Several loaders read side by side, shorter ones again until the longest has ended."""
    from minitorch.trainer.combined_loader import CombinedLoader, rebuild

    def loader(one: Any) -> Any:
        return as_loader(one, batch_size=batch_size, shuffle=shuffle, name=name)

    return CombinedLoader(rebuild(source, loader), "max_size_cycle")


def length_of(loader: Any) -> float:
    """Batches of a loader; inf if it has no length, or only a stream's estimate."""
    from minitorch.data import DataLoader, IterableDataset

    if isinstance(loader, DataLoader) and isinstance(loader.dataset, IterableDataset):
        return math.inf
    try:
        return len(loader)
    except TypeError:
        return math.inf


def limited(total: float, limit: int | float | None, *, argument: str) -> float:
    """How many of `total` batches a limit allows.

    Args:
        total: Batches in the loader, inf if unknown.
        limit: A count (int), a share of `total` (float), or None for all.
        argument: Name of the limit in messages.

    Raises:
        DataError: A share of an unknown length, or a share that leaves nothing.
    """
    if limit is None or limit == 1.0 and isinstance(limit, float):
        return total
    if isinstance(limit, int):
        return min(total, limit)
    if limit == 0.0:
        return 0
    if math.isinf(total):
        raise DataError(
            f"Trainer: {argument}={limit} is a share, but the loader has no length. "
            "Pass a number of batches (an integer)."
        )
    count = int(total * limit)
    if count == 0:
        raise DataError(
            f"Trainer: {argument}={limit} of {int(total)} batches leaves none. "
            f"Pass a share ≥ {1 / total:.3g}, or a number of batches (an integer)."
        )
    return count


class Batches:
    """The batches of one loader, with a limit.

    Attributes:
        loader: The iterable of batches.
        count: Batches of an epoch after the limit; inf if unknown.
        name: Name in messages.
    """

    def __init__(self, loader: Any, limit: int | float | None, *, name: str, argument: str) -> None:
        self.loader = loader
        self.name = name
        self._reading: Any = None
        total = length_of(loader)
        if total == 0:
            raise DataError(
                f"{name}: there must be at least one batch. Got a {type(loader).__name__} of "
                "length 0."
            )
        self.count = limited(total, limit, argument=argument)

    def start(self, epoch: int) -> Iterator[Any]:
        """The batches of an epoch from its first one."""
        self._set_epoch(epoch)
        return self._read()

    def another_pass(self, epoch: int) -> Iterator[Any]:
        """The batches of an epoch once more; the pass of `start` keeps its position."""
        self._set_epoch(epoch)
        return self._batches()

    def _set_epoch(self, epoch: int) -> None:
        set_epoch = getattr(self.loader, "set_epoch", None)
        if set_epoch is not None:
            set_epoch(epoch)

    def resume(self, position: Position, state: Any) -> Iterator[Any]:
        """The batches of the current epoch that follow a position.

        A loader without `load_state_dict` is read and thrown away up to the position.
        """
        if position.batch == 0:
            return self.start(position.epoch)
        load = getattr(self.loader, "load_state_dict", None)
        if load is not None and state is not None:
            load(state)
            return self._read()
        batches = self.start(position.epoch)
        for done in range(position.batch):
            if next(batches, END) is END:
                raise DataError(
                    f"{self.name}: the checkpoint was written after batch {position.batch} of its "
                    f"epoch, but there are only {done} batches. Resume with the same data."
                )
        return batches

    def check_not_empty(self, position: Position) -> None:
        """Raises DataError if an epoch ended before its first batch."""
        if position.batch == 0:
            raise DataError(
                f"{self.name}: every epoch needs at least one batch. Got none in epoch "
                f"{position.epoch} from a {type(self.loader).__name__}. If it can be read only "
                "once, pass a list or an object whose __iter__ starts afresh."
            )

    def state_dict(self) -> Any:
        """The position of the pass that `start` or `resume` began; None if nobody keeps one.

        Another pass over the same loader, such as a validation's, does not change it.
        """
        keeper = self.loader if self._reading is None else self._reading
        state = getattr(keeper, "state_dict", None)
        return None if state is None else state()

    def close(self) -> None:
        """Ends the pass; its position stays readable."""
        if self._reading is not None:
            self._reading.close()

    def _read(self) -> Iterator[Any]:
        batches = self._batches()
        keeps = hasattr(batches, "state_dict") and hasattr(batches, "close")
        self._reading = batches if keeps else None
        return batches

    def _batches(self) -> Any:
        read = getattr(self.loader, "read_batches", None)  # of a CombinedLoader
        return iter(self.loader) if read is None else read()


def first_batches(batches: Batches, limit: int | float) -> list[Any]:
    """The first batches of epoch 0 as a list, for `overfit_batches`."""
    count = limited(length_of(batches.loader), limit, argument="overfit_batches")
    found: list[Any] = []
    for batch in batches.start(0):
        if len(found) >= count:
            break
        found.append(batch)
    return found
