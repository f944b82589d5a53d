"""The batch that a run is at, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class CurrentBatch:
    """The batch of this moment; a part of it while it is learned in parts.

    Attributes:
        data: What the step gets, placed on the device.
        size: Its samples; None until `trainer.batch_size` has read them.
        count: The number of items that training_step returned with its loss, or None.
        differentiated: A backward pass has begun whose gradients belong to this batch.
    """

    data: Any = None
    size: float | None = None
    count: float | None = None
    differentiated: bool = False
