"""Which file is meant by `ckpt_path`: a path, "best", "last", a folder, or "auto"."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from minitorch.callbacks.checkpoint_files import ENDING
from minitorch.errors import ArgumentError, CheckpointError, TrainerError
from minitorch.trainer import checkpoint
from minitorch.trainer.result import Checkpoint

if TYPE_CHECKING:
    from minitorch.callbacks import Callback
    from minitorch.trainer.status import Status
    from minitorch.trainer.trainer import Trainer


class Found(NamedTuple):
    """A checkpoint and what it holds.

    Attributes:
        path: The file.
        tree: Its state tree.
    """

    path: str
    tree: dict[str, Any]


def best(trainer: Status) -> Checkpoint | None:
    """The file with the best score, of the first callback that has one and a monitor."""
    for keeper in trainer.checkpoint_callbacks:
        if keeper.best_model_path and keeper.monitor is not None:
            score = keeper.best_model_score
            return Checkpoint(
                str(keeper.best_model_path), keeper.monitor, None if score is None else float(score)
            )
    return None


def last(trainer: Status) -> Checkpoint | None:
    """The file with the newest state, of the first callback that has one."""
    for keeper in trainer.checkpoint_callbacks:
        if keeper.last_model_path:
            return Checkpoint(str(keeper.last_model_path), keeper.monitor)
    return None


def check_kind(path: Any) -> None:
    """Raises unless ckpt_path is None or a path.

    Raises:
        ArgumentError: It is something else, such as `FitResult.last` of a run without a file.
    """
    if path is None or isinstance(path, str | os.PathLike):
        return
    raise ArgumentError(
        'ckpt_path: it is a path, "last", "best" or "auto". Got '
        f"{type(path).__name__}, which is what result.last and result.best are where a run wrote "
        "no file. Pass a ModelCheckpoint to the run that is to be continued, or call its "
        "trainer.save_checkpoint(path), and pass that path."
    )


def named(trainer: Status, path: Any) -> Any:
    """The file that ckpt_path names: a path, "best" or "last"; None for the weights of now.

    "last" is what this Trainer kept last; before its first run, the newest "last*.ckpt" where
    "auto" looks, too. A `fast_dev_run` keeps no checkpoints: both names mean the
    weights of now.

    Raises:
        TrainerError: No callback kept such a checkpoint.
    """
    check_kind(path)
    if path not in ("best", "last"):
        return path
    if trainer.fast_dev_run:
        return None
    found = best(trainer) if path == "best" else last(trainer)
    if found is not None:
        return found
    placed = [keeper for keeper in trainer.checkpoint_callbacks if keeper.dirpath]
    folders = [f for keeper in placed for f in (keeper.dirpath, *keeper.search_folders(trainer))]
    folders = list(dict.fromkeys(map(os.fspath, folders)))
    if path == "last":  # of an earlier process
        files = [file for folder in folders for file in Path(folder).glob("last*.ckpt")]
        if files:
            return str(max(files, key=lambda file: (file.stat().st_mtime_ns, str(file))))
    raise TrainerError(
        f'ckpt_path="{path}": a ModelCheckpoint of this Trainer must have kept one. There is none'
        f"{' in ' + ', '.join(map(str, folders)) if folders else ''}. Pass "
        "ModelCheckpoint(monitor=..., save_last=True) in callbacks, or a path."
    )


def newest_of(trainer: Trainer, callbacks: Iterable[Callback]) -> Found | None:
    """The newest whole checkpoint in the folders that the callbacks name; None to start afresh.

    By `search_folders` ModelCheckpoint names its folder, and
    those of the logger's earlier versions if it saves beside a logger; BackupAndRestore its own.

    Raises:
        TrainerError: No callback keeps checkpoints.
    """
    folders = [folder for callback in callbacks for folder in callback.search_folders(trainer)]
    if not folders:
        raise TrainerError(
            'fit: ckpt_path="auto" looks where a callback keeps checkpoints. Got none in '
            "callbacks. Pass a ModelCheckpoint or a BackupAndRestore, or a folder as ckpt_path."
        )
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
