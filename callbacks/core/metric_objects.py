"""Metric objects of a module: found by attribute, saved, and taken back with a failed step."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from minitorch.errors import TrainerError

_HOME = "minitorch.metrics.metric"

Kept = list[tuple[Any, dict[str, Any]]]


def is_metric(value: Any) -> bool:
    """True for metric objects; there are none before their package is loaded."""
    home = sys.modules.get(_HOME)
    return home is not None and isinstance(value, home.Metric)


def batch_value(name: str, source: Any) -> Any:
    """The value of the batch that a metric object was called with last.

    Raises:
        TrainerError: It was updated, not called.
    """
    value = getattr(source, "batch_value", None)
    if value is None:
        raise TrainerError(
            f"log({name!r}): a step value of {type(source).__name__} is that of the last batch, "
            "and it was only updated. Got on_step=True. Call it (metric(preds, target)) instead "
            "of update, or log it with on_step=False, on_epoch=True."
        )
    return value


class MetricObjects:
    """The metric objects among a module's attributes, also in its lists, tuples and dicts."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def find(self, module: Any) -> None:
        """Looks for them."""
        self.found = dict(_search(vars(module).items())) if _HOME in sys.modules else {}

    def path_of(self, source: Any) -> str | None:
        """The attribute that holds a metric object; None if there is none."""
        return next((path for path, held in self.found.items() if held is source), None)

    def kept(self) -> Kept:
        """Their states, to be able to go back to them."""
        return [(held, held._snapshot()) for held in self.found.values()]

    @staticmethod
    def rewind(kept: Kept) -> None:
        """Goes back to states that were kept."""
        for held, state in kept:
            held._restore(state)

    def state_of(self, kept: Kept) -> dict[str, Any]:
        """The state dict that they had when `kept` was taken."""
        with self.unchanged():
            self.rewind(kept)
            return self.state_dict()

    def kept_as(self, state: dict[str, Any]) -> Kept:
        """What `kept` gave when `state_dict` gave this."""
        with self.unchanged():
            self.load_state_dict(state)
            return self.kept()

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """What they measure in the block is taken back."""
        kept = self.kept()
        try:
            yield
        finally:
            self.rewind(kept)

    def state_dict(self) -> dict[str, Any]:
        """Their states by attribute."""
        return {path: held.state_dict() for path, held in self.found.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Puts back the states of those that are there."""
        for path, held in self.found.items():
            if path in state:
                held.load_state_dict(state[path])


def _search(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for path, value in items:
        inner: Iterable[tuple[Any, Any]] = ()
        if is_metric(value):
            yield path, value
        elif type(value) in (list, tuple):
            inner = enumerate(value)
        elif type(value) is dict:
            inner = value.items()
        for key, held in inner:
            if is_metric(held):
                yield f"{path}.{key}", held
