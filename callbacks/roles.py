"""Roles: callbacks that the Trainer knows by what they hold, whatever their class.

`Callback` declares what is asked of every callback; here stands what only some have. A class of
your own plays a role by having all of its attributes.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class KeepsCheckpoints(Protocol):
    """Keeps files to go back to, as ModelCheckpoint does: `FitResult.best`, `ckpt_path="last"`.

    Attributes:
        monitor: The metric that chooses the best one, or None.
        dirpath: The folder of the files, or None before a run.
    """

    monitor: str | None
    dirpath: Any

    @property
    def best_model_path(self) -> str:
        """File with the best score; "" if there is none, or no monitor."""

    @property
    def best_model_score(self) -> float | None:
        """Its score, or None."""

    @property
    def last_model_path(self) -> str:
        """File with the newest state; "" if there is none."""


@runtime_checkable
class StopsEarly(Protocol):
    """Stops a run before its limit, as EarlyStopping does.

    Attributes:
        stopped_epoch: Epoch in which it stopped the run, else 0.
    """

    stopped_epoch: int


@runtime_checkable
class ShowsProgress(Protocol):
    """Draws the progress of a run, as the progress bars do.

    Attributes:
        refresh_rate: Redraw at most after so many batches; 0 shows nothing.
    """

    refresh_rate: int

    def print(self, *values: Any, **options: Any) -> None:
        """Prints without disturbing what is drawn."""
