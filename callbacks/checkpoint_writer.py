"""Writes the files of a callback, at once or on a thread, and puts things right if it fails."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.checkpoint_files import release
from minitorch.errors import CheckpointError

if TYPE_CHECKING:
    from minitorch.trainer import Trainer


@dataclass(frozen=True)
class Job:
    """One file to write.

    Attributes:
        path: The file.
        weights_only: Leave out what resuming needs.
        then: Runs once the file is complete, on the thread that wrote it: second names, removals.
        undo: Runs if it failed, on the main thread: takes back what was noted.
        tell: Runs after success, on the main thread.
    """

    path: str
    weights_only: bool
    then: Callable[[], None]
    undo: Callable[[], None]
    tell: Callable[[], None]


class CheckpointWriter:
    """Writes one file after the other; an older file stays until its successor is complete.

    On a thread only the copy of the state keeps training waiting. One file is written at a time:
    the next one waits for it, and what went wrong is told then, at the latest when the run ends.

    What the file system refuses (a full disk) is a warning, because the next save may work and a
    run must not end for it; any other error is raised.

    Args:
        who: Name of the callback, for messages.
        asynchronous: Write on a thread.

    Attributes:
        failures: One sentence for each file that could not be written.
        failed: The newest file could not be written.
    """

    def __init__(self, who: str, *, asynchronous: bool) -> None:
        self.who = who
        self.asynchronous = asynchronous
        self.failures: list[str] = []
        self.failed = False
        self._job: Job | None = None
        self._logged: dict[str, Any] = {}
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def write(self, trainer: Trainer, job: Job) -> None:
        """Writes the state of this moment, or begins to."""
        self.collect(trainer)
        try:
            if self.asynchronous:
                self._begin(trainer, job)
                return
            try:
                trainer.save_checkpoint(job.path, weights_only=job.weights_only)
                job.then()
            finally:
                release(job.path)
        except BaseException as error:
            self._failed(job, error)
        else:
            self.failed = False
            job.tell()

    def _begin(self, trainer: Trainer, job: Job) -> None:
        tree = trainer.dump_checkpoint(weights_only=job.weights_only)
        self._job, self._error = job, None
        self._logged = trainer.metric_log.results()

        def work() -> None:
            from minitorch.io import save_tree

            try:
                os.makedirs(os.path.dirname(job.path), exist_ok=True)
                save_tree(job.path, tree)
                job.then()
            except BaseException as error:  # told by collect
                self._error = error
            finally:
                release(job.path)

        # no daemon: the interpreter waits for it, whatever ends the program
        self._thread = threading.Thread(target=work, name=f"{self.who}: {job.path}")
        self._thread.start()

    def collect(self, trainer: Trainer) -> None:
        """Waits for the file that is being written, and tells what became of it."""
        job, thread = self._job, self._thread
        if job is None or thread is None:
            return
        thread.join()
        self._job = self._thread = None
        error, self._error = self._error, None
        if error is not None:
            self._failed(job, error)
            return
        self.failed = False
        job.tell()
        trainer.logger_group.after_save_checkpoint(job.path, self._logged)

    def _failed(self, job: Job, error: BaseException) -> None:
        job.undo()
        refused = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(error, OSError | CheckpointError) or not isinstance(refused, OSError):
            raise error
        self.failed = True
        text = f"{self.who}: {error} Training goes on without this checkpoint."
        self.failures.append(text)
        warnings.warn(text, UserWarning, stacklevel=2)
