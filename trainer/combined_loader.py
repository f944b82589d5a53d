"""CombinedLoader: several loaders read side by side, or one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from minitorch.errors import ArgumentError, DataError
from minitorch.trainer.loaders import END, holds_loaders, length_of

MODES = ("min_size", "max_size_cycle", "max_size", "sequential")
APART = 1 << 20
"""Epoch numbers between two readings of one loader in the same epoch: their orders differ."""


class CombinedLoader:
    """Batches of several loaders as one: a batch has the form of `iterables`, with their batches.

    Iterating gives (batch, batch_idx, dataloader_idx), as Lightning's. A fit reads the batches
    alone, and its checkpoints hold the place in each loader.

    Args:
        iterables: A list, tuple or dict of loaders, also nested.
        mode: "min_size" ends with the shortest, "max_size_cycle" starts shorter ones again until
            the longest ends, "max_size" gives None for those that have ended, "sequential" reads
            one loader after the other.

    Raises:
        ArgumentError: There is no such mode.
        DataError: There is no loader.
    """

    def __init__(self, iterables: Any, mode: str = "min_size") -> None:
        if mode not in MODES:
            raise ArgumentError(
                f"CombinedLoader: mode must be one of {', '.join(map(repr, MODES))}. Got {mode!r}."
            )
        self.iterables = iterables
        self.mode = mode
        self.flattened = list(_leaves(iterables, top=True))
        if not self.flattened:
            raise DataError(
                f"CombinedLoader: there must be at least one loader. Got {iterables!r}."
            )
        self._at: tuple[int, int] = (0, 0)
        self._epoch = 0
        self._saved: dict[str, Any] | None = None
        self._latest: Side | Row | None = None

    @property
    def limits(self) -> list[float]:
        """Batches of each loader; inf if unknown."""
        return [length_of(loader) for loader in self.flattened]

    def __len__(self) -> int:
        """Batches of an epoch.

        Raises:
            TypeError: A loader that decides has no length.
        """
        limits = self.limits
        total = min(limits) if self.mode == "min_size" else max(limits)
        if self.mode == "sequential":
            total = sum(limits)
        if math.isinf(total):
            raise TypeError("CombinedLoader: a loader has no length.")
        return int(total)

    def __iter__(self) -> Iterator[tuple[Any, int, int]]:
        batches = self.read_batches()
        for batch in batches:
            yield batch, batches.idx, batches.loader_idx

    def read_batches(self) -> Side | Row:
        """One epoch of batches; the iterator tells its position by `state_dict`."""
        saved, self._saved = self._saved, None
        kind: Any = Row if self.mode == "sequential" else Side
        self._latest = kind(self, self._epoch, saved)
        self._epoch += 1
        return self._latest

    def set_epoch(self, epoch: int) -> None:
        """Let the next reading be that of this epoch."""
        if self._saved is None or self._saved["epoch"] != epoch:
            self._saved = None
        self._epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """The place of the latest reading in each loader."""
        return {} if self._latest is None else self._latest.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Let the next reading go on with the batch after a saved place.

        Raises:
            DataError: It has another number of loaders.
        """
        if not state:
            return
        if len(state["loaders"]) != len(self.flattened):
            raise DataError(
                "CombinedLoader.load_state_dict: the loaders must be those that were saved. Got "
                f"{len(self.flattened)} for {len(state['loaders'])}. Resume with the same data."
            )
        self._saved, self._epoch = state, state["epoch"]


class Part:
    """The reading of one loader: how often it was started, how many batches it gave."""

    def __init__(self, loader: Any, epoch: int, saved: dict[str, Any] | None) -> None:
        self.loader = loader
        self.epoch = epoch
        self.round = saved["round"] if saved else 0
        self.done = saved["done"] if saved else 0
        self.ended = bool(saved and saved["ended"])
        self._saved = saved
        self._batches: Any = None

    def next(self) -> Any:
        """The next batch, or END."""
        if self._batches is None:
            self._batches = self._go_on()
        batch = next(self._batches, END)
        if batch is not END:
            self.done += 1
        return batch

    def again(self) -> Any:
        """The first batch of a new round, or END if the loader gives none."""
        if not self.done:
            return END
        self.round, self.done, self._saved = self.round + 1, 0, None
        self._batches = self._start()
        return self.next()

    def _start(self) -> Iterator[Any]:
        set_epoch = getattr(self.loader, "set_epoch", None)
        if set_epoch is not None:
            set_epoch(self.epoch + APART * self.round)
        return iter(self.loader)

    def _go_on(self) -> Iterator[Any]:
        saved, self._saved = self._saved, None
        load = getattr(self.loader, "load_state_dict", None)
        if saved and saved["state"] is not None and load is not None:
            load(saved["state"])
            return iter(self.loader)
        batches = self._start()
        for _ in range(self.done):
            next(batches, END)
        return batches

    def state_dict(self) -> dict[str, Any]:
        """Where it stands."""
        keeper = getattr(self._batches, "state_dict", None)
        state = None if keeper is None else keeper()
        if self._batches is None and self._saved is not None:
            state = self._saved["state"]
        return {"round": self.round, "done": self.done, "ended": self.ended, "state": state}

    def close(self) -> None:
        """Ends the reading."""
        close = getattr(self._batches, "close", None)
        if close is not None:
            close()


class _Reading:
    """One epoch of a CombinedLoader. `idx` and `loader_idx` tell where the last batch came from."""

    def __init__(self, owner: CombinedLoader, epoch: int, saved: dict[str, Any] | None) -> None:
        self._owner = owner
        self._epoch = epoch
        states = saved["loaders"] if saved else [None] * len(owner.flattened)
        pairs = zip(owner.flattened, states, strict=True)
        self.parts = [Part(loader, epoch, state) for loader, state in pairs]
        self.idx = saved["idx"] if saved else -1
        self.loader_idx = saved["loader_idx"] if saved else 0

    def __iter__(self) -> Any:
        return self

    def state_dict(self) -> dict[str, Any]:
        """The place in each loader."""
        return {
            "epoch": self._epoch,
            "idx": self.idx,
            "loader_idx": self.loader_idx,
            "loaders": [part.state_dict() for part in self.parts],
        }

    def close(self) -> None:
        """Ends all readings."""
        for part in self.parts:
            part.close()


class Side(_Reading):
    """All loaders side by side."""

    def __next__(self) -> Any:
        mode = self._owner.mode
        found = [END if part.ended else part.next() for part in self.parts]
        for part, batch in zip(self.parts, found, strict=True):
            part.ended = part.ended or batch is END
        ended = [part.ended for part in self.parts]
        if all(ended) or (mode == "min_size" and any(ended)):
            raise StopIteration
        if mode == "max_size_cycle":
            found = self._cycled(found)
        self.idx += 1
        left = iter([None if batch is END else batch for batch in found])
        return rebuild(self._owner.iterables, lambda _: next(left))

    def _cycled(self, found: list[Any]) -> list[Any]:
        for index, (part, batch) in enumerate(zip(self.parts, found, strict=True)):
            if batch is not END:
                continue
            again = part.next() if part.round else END
            again = part.again() if again is END else again
            if again is END:
                raise DataError(
                    "CombinedLoader: a loader that is read again must give batches. Got none from "
                    f"the {type(part.loader).__name__} at place {index}. Pass one whose __iter__ "
                    "starts afresh."
                )
            found[index] = again
        return found


class Row(_Reading):
    """One loader after the other."""

    def __next__(self) -> Any:
        while self.loader_idx < len(self.parts):
            batch = self.parts[self.loader_idx].next()
            if batch is not END:
                self.idx += 1
                return batch
            self.loader_idx += 1
            self.idx = -1
        raise StopIteration


def _is_holder(value: Any, *, top: bool) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list | tuple) and (top or holds_loaders(value))


def _leaves(value: Any, *, top: bool) -> Iterator[Any]:
    if not _is_holder(value, top=top):
        yield value
        return
    for held in value.values() if isinstance(value, Mapping) else value:
        yield from _leaves(held, top=False)


def rebuild(value: Any, make: Callable[[Any], Any], *, top: bool = True) -> Any:
    """The same lists, tuples and dicts with `make` of each loader, from first to last."""
    if not _is_holder(value, top=top):
        return make(value)
    if isinstance(value, Mapping):
        return {key: rebuild(held, make, top=False) for key, held in value.items()}
    items = [rebuild(held, make, top=False) for held in value]
    if isinstance(value, tuple):
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return items
