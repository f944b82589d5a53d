"""How long a fit is, in batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minitorch.trainer import Trainer


def remaining_batches(trainer: Trainer) -> float:
    """Training batches still to come by max_epochs and max_steps; inf if unknown."""
    position, count = trainer.position, trainer.num_training_batches
    by_epochs = by_steps = math.inf
    if trainer.max_epochs != -1 and not math.isinf(count):
        by_epochs = count * (trainer.max_epochs - position.epoch) - position.batch
    if trainer.max_steps != -1:
        updates = trainer.max_steps - position.global_step
        by_steps = updates * trainer.accumulation.batches - position.window
    return max(0.0, min(by_epochs, by_steps))
