"""The files that a ModelCheckpoint keeps, ranked ones and the last one, written in safe order."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.checkpoint_files import (
    ENDING,
    Identity,
    duplicate,
    free_path,
    identity,
    release,
    remove_inside,
)
from minitorch.callbacks.checkpoint_ranking import Ranking
from minitorch.callbacks.checkpoint_writer import CheckpointWriter, Job
from minitorch.callbacks.monitor import Mode

if TYPE_CHECKING:
    from minitorch.trainer import Trainer

LAST = "last"


class KeptFiles:
    """Writes files into a folder, and removes those that better ones displace.

    What a file's own state must hold, such as its place in the ranking, is noted before it is
    written, and taken back if that fails.

    Args:
        folder: Absolute path.
        monitor: Metric of the scores, for messages; None without one.
        mode: Which scores are better; None without a monitor, when newer ones are.
        most: Files in the ranking: -1 for all, 0 for none.
        renews_last: Every save brings the last file up to date, as a second name.
        tracks_last: Every save counts as the newest state.
        weights_only: Leave out what resuming needs.
        versions: Append "-v1" rather than replace a file of another run.
        asynchronous: Write on a thread.
        verbose: Print what is saved.

    Attributes:
        ranking: The paths that stay, with their scores.
        writer: What writes them.
        last_path: File with the newest state; "" before it is written.
    """

    def __init__(
        self,
        folder: str | None,
        *,
        monitor: str | None,
        mode: Mode | None,
        most: int,
        renews_last: bool,
        tracks_last: bool,
        weights_only: bool,
        versions: bool,
        asynchronous: bool,
        verbose: bool,
    ) -> None:
        self.folder = "" if folder is None else folder
        self.monitor = monitor
        self.renews_last = renews_last
        self.tracks_last = tracks_last
        self.weights_only = weights_only
        self.versions = versions
        self.verbose = verbose
        self.ranking = Ranking(most, mode or "max")
        self.writer = CheckpointWriter("ModelCheckpoint", asynchronous=asynchronous)
        self.last_path = ""
        self._last_file = ""
        self._written: dict[str, Identity | None] = {}
        self._last_batches = -1
        self._saves = 0

    def save(self, trainer: Trainer, name: str, score: float | None) -> None:
        """Writes the file if it is good enough to stay, and removes the one it displaces.

        Args:
            trainer: The run.
            name: Of the file, without its ending.
            score: Value of the monitor; None without one.
        """
        self.writer.collect(trainer)  # its failure would change the ranking
        score, ranking = float(self._saves) if score is None else score, self.ranking
        if not ranking.admits(score) and ranking.k != -1:
            return
        leaving = self._own(ranking.displaced_by(score))
        path = self.free(name, leaving)
        self._saves += 1
        undo = self._taking_back()
        if math.isfinite(score):
            ranking.add(path, score)
        last = self._own_last() if self.renews_last else None
        if self.tracks_last:
            self.note_last(trainer, last or path)
        self._write(trainer, path, score, partial(self._settle, path, last, leaving), undo)

    def _settle(self, path: str, last: str | None, leaving: str | None) -> None:
        """The file is complete: the last checkpoint is renewed, then the displaced file goes."""
        self._know(path)
        if last is not None:
            duplicate(path, last)
            self._know(last)
        if leaving is not None and leaving != path:
            remove_inside(self.folder, leaving)

    def save_last(self, trainer: Trainer) -> None:
        """Writes the last file."""
        self.writer.collect(trainer)
        undo = self._taking_back()
        target = self._own_last()
        self.note_last(trainer, target)
        self._write(trainer, target, None, partial(self._know, target), undo)

    def _know(self, path: str) -> None:
        """A file is complete: it is this run's until its identity is another one."""
        self._written[path] = identity(path)

    def _own(self, path: str | None) -> str | None:
        """The path of a file that this run may replace or remove; None if another one wrote it."""
        found = identity(path) if path and self.versions else None
        if path and found is not None and found != self._written.get(path):
            warnings.warn(
                f"ModelCheckpoint: {path} must be written by one run only. Another one has "
                "replaced it: it stays, and this run goes on under the next free name. Give each "
                "run a dirpath of its own.",
                UserWarning,
                stacklevel=2,
            )
            return None
        return path or None

    def note_last(self, trainer: Trainer, path: str) -> None:
        """The newest state is in this file."""
        self.last_path, self._last_batches = path, trainer.position.batches

    def holds(self, trainer: Trainer) -> bool:
        """Whether the last file has the state of this moment."""
        return self._last_batches == trainer.position.batches

    def free(self, name: str, replaceable: str | None = None) -> str:
        """A path of this folder that may be written.

        Args:
            name: Of the file, without its ending.
            replaceable: A path that may be written although it exists.
        """
        stem = os.path.join(self.folder, name)
        if not self.versions and stem + ENDING not in self.ranking:
            return stem + ENDING
        return free_path(stem, taken=self.ranking, replaceable=replaceable)

    def _own_last(self) -> str:
        self._last_file = self._own(self._last_file) or self.free(LAST)
        return self._last_file

    def _write(
        self,
        trainer: Trainer,
        path: str,
        score: float | None,
        then: Callable[[], None],
        undo: Callable[[], None],
    ) -> None:
        tell = partial(self._tell, trainer, path, score)
        self.writer.write(trainer, Job(path, self.weights_only, then, undo, tell))

    def _tell(self, trainer: Trainer, path: str, score: float | None) -> None:
        if self.verbose:
            ranked = self.monitor is not None and score is not None
            what = f" ({self.monitor} = {score:.6g})" if ranked else ""
            trainer.print(f"ModelCheckpoint: saved {path}{what}")

    def _taking_back(self) -> Callable[[], None]:
        """Undoes what is noted before a file is written, so that the file holds it."""
        entries = list(self.ranking.entries)
        last, file = (self.last_path, self._last_batches), self._last_file

        def undo() -> None:
            self.ranking.entries = entries
            self.last_path, self._last_batches = last
            if self._last_file != file:  # nobody has it yet
                release(self._last_file)
                self._last_file = file

        return undo

    def state_dict(self) -> dict[str, Any]:
        """What the files are, and how good."""
        return {
            "dirpath": self.folder,
            "kept": [[path, score] for path, score in self.ranking.entries],
            "last_model_path": self.last_path,
            "last_file": self._last_file,
            "last_batches": self._last_batches,
            "saves": self._saves,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on with the files of a state that are still there, also if they have moved here."""
        found = [(self._find(path), score) for path, score in state_dict["kept"]]
        entries = [(path, score) for path, score in found if path is not None]
        if len(entries) < len(found):
            folders = dict.fromkeys((state_dict["dirpath"], self.folder))
            warnings.warn(
                f"ModelCheckpoint: {len(found) - len(entries)} of {len(found)} files that the "
                f"checkpoint ranks are no longer in {' or '.join(folders)}. "
                "They are left out of the ranking.",
                UserWarning,
                stacklevel=2,
            )
        self.ranking.entries = []
        for path, score in entries:
            if self.ranking.admits(score):
                self.ranking.add(path, score)
        self.last_path = self._find(state_dict["last_model_path"]) or ""
        last = self._find(state_dict["last_file"]) or ""
        self._last_file = last if os.path.dirname(last) == self.folder else ""
        for mine in (self._last_file, *(path for path, _ in self.ranking.entries)):
            self._know(mine)
        self._last_batches = state_dict["last_batches"] if self.last_path else -1
        self._saves = state_dict["saves"]

    def _find(self, path: str) -> str | None:
        if not path:
            return None
        here = os.path.join(self.folder, os.path.basename(path))
        return next((place for place in (path, here) if os.path.exists(place)), None)
