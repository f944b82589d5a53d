"""Epochs in which an optimizer has learning rate 0, so that nothing is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.trainer import Trainer

_CHECK = "update-had-no-effect"


class Standstill:
    """Warns, once in a run, of an epoch of updates in which all rates of an optimizer are 0.

    A rate that begins at 0 and rises within the epoch is a warm-up.
    """

    def __init__(self) -> None:
        self._still: dict[int, int] = {}

    def begin(self, trainer: Trainer) -> None:
        """An epoch, or what is left of one, begins."""
        self._still = {id(o): o.updates for o in trainer.optimizers if not any(_rates(o))}

    def look(self, optimizer: Any) -> None:
        """A schedule moved after an update."""
        if self._still and any(_rates(optimizer)):
            self._still.pop(id(optimizer), None)

    def end(self, trainer: Trainer) -> None:
        """The epoch is over, and schedules have not moved for it."""
        if not self._still or trainer.checks.meant(_CHECK):
            return
        for optimizer in trainer.optimizers:
            before = self._still.get(id(optimizer), optimizer.updates)
            if optimizer.updates == before or any(_rates(optimizer)):
                continue
            of = [c.scheduler for c in trainer.lr_scheduler_configs]
            moved = [type(s).__name__ for s in of if getattr(s, "optimizer", None) is optimizer]
            trainer.checks.warn(
                _CHECK,
                "configure_optimizers: updates with learning rate 0 change nothing. Got "
                f"{type(optimizer).__name__} with lr=0 in all groups through epoch "
                f"{trainer.position.epoch}, {optimizer.updates - before} updates, "
                f"{'under ' + ', '.join(moved) if moved else 'without a schedule'}. "
                f"{'Make the schedule as long as the run' if moved else 'Raise lr'}, or end the "
                "run before.",
            )


def _rates(optimizer: Any) -> list[float]:
    return [group["lr"] for group in optimizer.param_groups]
