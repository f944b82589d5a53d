"""OnExceptionCheckpoint: a file to go on from when something fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.checkpoint_files import ENDING, check_writable
from minitorch.callbacks.monitor import refuse

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class OnExceptionCheckpoint(Callback):
    """Saves the whole state when an exception ends a fit, also a second Ctrl-C.

    The file stays until the next exception replaces it. It holds the state before the step that
    failed, so that a resumed run repeats that step.

    Args:
        dirpath: Folder of the file.
        filename: Its name without the ending ".ckpt".
    """

    order = Order.PERSIST

    def __init__(self, dirpath: str | os.PathLike[str], filename: str = "on_exception") -> None:
        self.dirpath = os.path.abspath(os.fspath(dirpath))
        self.filename = filename
        self._training = False

    @property
    def ckpt_path(self) -> str:
        """The file."""
        return os.path.join(self.dirpath, self.filename + ENDING)

    def search_folders(self, trainer: Trainer) -> list[str]:
        """Where `fit(ckpt_path="auto")` looks for a checkpoint."""
        return [self.dirpath]

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._training = False
        if stage != "fit":
            return
        if not isinstance(self.filename, str) or not self.filename:
            refuse("OnExceptionCheckpoint", "filename", self.filename, "a name")
        check_writable(self.dirpath, "OnExceptionCheckpoint")

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._training = True

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._training = False

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        if self._training:
            trainer.save_checkpoint(self.ckpt_path)
            exception.add_note(f"OnExceptionCheckpoint saved {self.ckpt_path}")
