"""Whether a checkpoint can be written at a moment of a run."""

from __future__ import annotations

import enum


class Saving(enum.Enum):
    """What becomes of a call of `save_checkpoint` at this moment."""

    NOW = "written at once"
    LATER = "written when the event is over"
    NEVER = "refused: a batch is half done"
