"""Where a fit stands: the few integers that a resumed run starts from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True)
class Position:
    """The place of a fit between two batches.

    Attributes:
        epoch: Finished epochs, which is the number of the current one.
        batch: Batches done in this epoch.
        window: Batches done in the current accumulation window.
        learned: Backward passes in the window: 0 if all its batches were left out so far.
        windows: Accumulation windows that are over, in all epochs.
        global_step: Optimizer updates applied, once per batch however many optimizers step.
        batches: Batches done in all epochs.
        started: The epoch's first event is going on or over.
        validated: The validation that was due after `batch` has run.
        epoch_done: The epoch's last event is going on or over.
    """

    epoch: int = 0
    batch: int = 0
    window: int = 0
    learned: int = 0
    windows: int = 0
    global_step: int = 0
    batches: int = 0
    started: bool = False
    validated: bool = False
    epoch_done: bool = False

    def state_dict(self) -> dict[str, Any]:
        """All attributes as a dict."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to a saved place; a finished epoch becomes the start of the next one."""
        for name, value in state.items():
            setattr(self, name, type(getattr(self, name))(value))
        if self.epoch_done:
            self.next_epoch()

    def rewind_window(self) -> None:
        """Goes back to the start of a window whose gradients are lost."""
        self.batch -= self.window
        self.batches -= self.window
        self.window = self.learned = 0

    def next_epoch(self) -> None:
        """Moves to the start of the next epoch."""
        self.epoch += 1
        self.batch = 0
        self.started = False
        self.validated = False
        self.epoch_done = False
