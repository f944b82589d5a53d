"""BackupAndRestore: start the same script again, and it goes on where it was."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.checkpoint_files import ENDING, check_writable, duplicate
from minitorch.callbacks.checkpoint_writer import CheckpointWriter, Job
from minitorch.callbacks.monitor import refuse

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class BackupAndRestore(Callback):
    """Keeps a backup of the whole state, and resumes from it if there is one.

    The backup is written at the end of epochs or every so many batches, when Ctrl-C or SIGTERM
    ends the run, and removed when the run has come to its end. A run that finds one resumes from
    it exactly, as with `fit(ckpt_path=...)`, which takes precedence.

    Args:
        backup_dir: Folder for the backup; no other run may use it.
        save_freq: "epoch", or a number of batches.
        double_checkpoint: Keep the backup before the newest one, too. The newest one is checked
            before it takes its place in any case.
        delete_checkpoint: Remove the backup when the run has come to its end.
        save_async: Write on a thread; training waits for a copy of the state only.

    Attributes:
        failures: One sentence for each backup that could not be written.
    """

    order = Order.PERSIST

    def __init__(
        self,
        backup_dir: str | os.PathLike[str],
        save_freq: str | int = "epoch",
        *,
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
        save_async: bool = False,
    ) -> None:
        self.backup_dir = os.path.abspath(os.fspath(backup_dir))
        self.save_freq = save_freq
        self.double_checkpoint = double_checkpoint
        self.delete_checkpoint = delete_checkpoint
        self._writer = CheckpointWriter("BackupAndRestore", asynchronous=save_async)
        self.failures = self._writer.failures
        self._saved = -1
        self._ended = False

    @property
    def path(self) -> str:
        """File of the newest backup."""
        return os.path.join(self.backup_dir, f"backup{ENDING}")

    @property
    def _previous(self) -> str:
        return os.path.join(self.backup_dir, f"backup-previous{ENDING}")

    def search_folders(self, trainer: Trainer) -> list[str]:
        """Where `fit` looks for a checkpoint to resume from."""
        return [self.backup_dir]

    def restores(self) -> bool:
        """Whether there is something to resume from without being asked."""
        return os.path.exists(self.path) or os.path.exists(self._previous)

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        from minitorch.io.atomic import clear_folder

        every = self.save_freq
        number = isinstance(every, int) and not isinstance(every, bool) and every > 0
        if every != "epoch" and not number:
            refuse("BackupAndRestore", "save_freq", every, '"epoch" or a number of batches ≥ 1')
        check_writable(self.backup_dir, "BackupAndRestore", "backup_dir")
        clear_folder(self.backup_dir)
        self._saved, self._ended = -1, False

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_end":
            return self.save_freq != "epoch"
        return super().listens(event)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.position.batches % int(self.save_freq) == 0:
            self._save(trainer)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self.save_freq == "epoch":
            self._save(trainer)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        if trainer.interrupted and self._saved != trainer.position.batches:
            self._save(trainer)
        self._ended = not trainer.interrupted

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._writer.collect(trainer)
        if self._ended and self.delete_checkpoint:
            for path in (self._previous, self.path):  # never the older one alone
                with contextlib.suppress(FileNotFoundError):
                    os.remove(path)
        self._ended = False

    def on_exception(self, trainer: Trainer, module: TaskModule, exception: BaseException) -> None:
        self._ended = False

    def _save(self, trainer: Trainer) -> None:
        self._writer.collect(trainer)
        if self.double_checkpoint and os.path.exists(self.path):
            duplicate(self.path, self._previous)
        before, self._saved = self._saved, trainer.position.batches

        def undo() -> None:
            self._saved = before

        self._writer.write(trainer, Job(self.path, False, _nothing, undo, _nothing))


def _nothing() -> None:
    """A backup has no second name and tells nothing."""
