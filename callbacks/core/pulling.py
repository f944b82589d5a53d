"""`training_step(self, dataloader_iter)`: the step takes its batches itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.errors import DataError

if TYPE_CHECKING:
    from minitorch.trainer import Trainer

ARGUMENT = "dataloader_iter"
_END = object()


class BatchIterator:
    """Gives (batch, batch_idx, dataloader_idx), placed on the device, as often as a step asks.

    The loop keeps one batch ready, so that it knows the end of the epoch before a step begins.

    Args:
        trainer: The run.
        take: Reads the next batch of an iterator.
    """

    def __init__(self, trainer: Trainer, take: Callable[..., Any]) -> None:
        self._trainer = trainer
        self._take = take
        self._batches: Any = None
        self._ready: Any = _END

    def next(self, batches: Any, end: Any) -> Any:
        """Itself in place of the next batch, or `end`."""
        self._batches = batches
        if self._ready is _END:
            self._ready = self._take(batches, _END)
        return end if self._ready is _END else self

    def __iter__(self) -> BatchIterator:
        return self

    def __next__(self) -> tuple[Any, int, int]:
        trainer = self._trainer
        batch, self._ready = self._ready, _END
        if batch is _END:
            batch = self._take(self._batches, _END)
            if batch is _END:
                raise StopIteration
            if trainer.train_data.state_dict() is None:
                raise DataError(
                    f"{ARGUMENT}: a step that takes several batches needs a loader that keeps its "
                    f"place, to resume there. Got a {type(trainer.train_data.loader).__name__}. "
                    "Pass a DataLoader."
                )
        for call in trainer.events.transform_batch:
            batch = call(batch, 0)
        trainer.see_batch(batch)
        return batch, trainer.position.batch, 0
