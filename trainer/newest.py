"""`fit(ckpt_path="auto")`: the newest checkpoint that is whole, or a fresh start."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from minitorch.callbacks.checkpoint_files import ENDING
from minitorch.errors import CheckpointError, TrainerError
from minitorch.trainer import checkpoint

if TYPE_CHECKING:
    from minitorch.callbacks import Callback
    from minitorch.trainer.trainer import Trainer


class Found(NamedTuple):
    """A checkpoint and what it holds.

    Attributes:
        path: The file.
        tree: Its state tree.
    """

    path: str
    tree: dict[str, Any]


def find(trainer: Trainer, callbacks: Iterable[Callback]) -> Found | None:
    """The newest whole checkpoint in the folders that the callbacks name; None to start afresh.

    A callback names them by its method `search_folders(trainer)`: ModelCheckpoint its folder, and
    those of the logger's earlier versions if it saves beside a logger; BackupAndRestore its own.

    Raises:
        TrainerError: No callback keeps checkpoints.
    """
    keepers: list[Any] = [cb for cb in callbacks if hasattr(cb, "search_folders")]
    if not keepers:
        raise TrainerError(
            'fit: ckpt_path="auto" looks where a callback keeps checkpoints. Got none in '
            "callbacks. Pass a ModelCheckpoint or a BackupAndRestore, or a folder as ckpt_path."
        )
    folders = [folder for callback in keepers for folder in callback.search_folders(trainer)]
    found = newest(folders, "auto")
    if found is None:
        where = " or ".join(dict.fromkeys(folders))
        trainer.print(f'Trainer.fit: no checkpoint in {where} yet, ckpt_path="auto" starts afresh.')
    else:
        _tell(trainer, found)
    return found


def inside(trainer: Trainer, folder: str) -> Found:
    """The newest whole checkpoint of one folder.

    Raises:
        CheckpointError: There is none.
    """
    found = newest([folder], folder)
    if found is None:
        raise CheckpointError(
            f"fit: a folder as ckpt_path must hold a checkpoint with the whole state. Got {folder} "
            "without one that is undamaged. Pass another folder or a file."
        )
    _tell(trainer, found)
    return found


def newest(folders: Iterable[str], asked: str) -> Found | None:
    """The newest file, by its time of writing, that is whole and holds the state of a run.

    Damaged files are named in a warning; weights without the state of a run are passed over.

    Args:
        folders: Where to look, not below.
        asked: What the user wrote, for the warning.
    """
    skipped, found = [], None
    for path in _by_age(folders):
        try:
            tree = checkpoint.read(path)
        except (CheckpointError, OSError) as error:
            skipped.append(str(error))
            continue
        if "loops" in tree:
            found = Found(path, tree)
            break
    if skipped:
        chosen = "starting afresh" if found is None else f"resuming from {found.path}"
        warnings.warn(
            f"fit: ckpt_path={asked!r} takes the newest checkpoint that is whole. Got "
            f"{len(skipped)} that are not, {chosen}: {' '.join(skipped)}",
            UserWarning,
            stacklevel=2,
        )
    return found


def _by_age(folders: Iterable[str]) -> list[str]:
    """The checkpoints, newest first; a file with two names comes once."""
    files: dict[tuple[int, int], tuple[int, str]] = {}
    for folder in dict.fromkeys(folders):
        if not os.path.isdir(folder):
            continue
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(ENDING) and entry.is_file():
                    stat = entry.stat()
                    files.setdefault((stat.st_dev, stat.st_ino), (stat.st_mtime_ns, entry.path))
    return [path for _, path in sorted(files.values(), reverse=True)]


def _tell(trainer: Trainer, found: Found) -> None:
    tree = found.tree
    trainer.print(
        f"Trainer.fit: resuming from {found.path} (epoch {tree['epoch']}, update "
        f"{tree['global_step']})."
    )
