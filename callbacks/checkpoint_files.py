"""The files of a folder of checkpoints: free names, second names, removal."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Container

from minitorch.callbacks import reservations
from minitorch.errors import ArgumentError

ENDING = ".ckpt"

_lock = threading.Lock()
_begun: set[str] = set()


def check_writable(folder: str, who: str, argument: str = "dirpath") -> None:
    """Finds out before training whether files can be written; nothing stays of the trial.

    Args:
        folder: Absolute path.
        who: Callback, in the message.
        argument: What of it names the folder, in the message.

    Raises:
        ArgumentError: The folder, or the first one above it that exists, cannot be written.
    """
    place = folder
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    what = "not a folder"
    if os.path.isdir(place):
        try:  # permissions say too little: of the system's own folders, quotas, other machines
            os.rmdir(tempfile.mkdtemp(prefix=".minitorch-", dir=place))
            return
        except OSError as error:
            what = f"not writable ({error.strerror})"
    raise ArgumentError(
        f"{who}: {argument} must be a folder that can be made and written. "
        f"Got {folder}, but {place} is {what}. Pass another {argument}."
    )


def free_path(stem: str, *, taken: Container[str], replaceable: str | None = None) -> str:
    """The first of stem.ckpt, stem-v1.ckpt, stem-v2.ckpt … that may be written.

    Nobody else gets it before `release`: files are also written on threads, and by other processes
    that share the folder.

    Args:
        stem: Path without ending.
        taken: Paths that are in use even if no file exists yet.
        replaceable: A path that may be written although it exists.
    """
    path, version = stem + ENDING, 0
    with _lock:
        while path != replaceable and not _take(path, taken):
            version += 1
            path = f"{stem}-v{version}{ENDING}"
        _begun.add(path)
    return path


def _take(path: str, taken: Container[str]) -> bool:
    """Reserves a name that is free; a file may have come before it was reserved."""
    if path in taken or path in _begun or os.path.exists(path) or not reservations.reserve(path):
        return False
    if os.path.exists(path):
        reservations.end(path)
        return False
    return True


def release(path: str) -> None:
    """The file that `free_path` gave a name to is there, or will not come."""
    with _lock:
        if path in _begun:
            _begun.discard(path)
            reservations.end(path)


Identity = tuple[int, int, int]


def identity(path: str) -> Identity | None:
    """What tells a file from every other that ever had its name; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def duplicate(source: str, target: str) -> None:
    """Gives a complete file a second name in one step, in place of an older file of that name.

    It is a hard link where the file system knows them: checkpoints are replaced, never changed,
    so that neither name can alter the other's content. Both are on the disk when it returns.
    """
    from minitorch.io.atomic import sync_folder, temporary_beside

    temporary = temporary_beside(target)
    try:
        try:
            os.link(source, temporary)
        except OSError:
            with open(source, "rb") as old, open(temporary, "xb") as new:
                shutil.copyfileobj(old, new)
                new.flush()
                os.fsync(new.fileno())
        os.replace(temporary, target)
        sync_folder(os.path.dirname(target))
    finally:
        release(target)
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def remove_inside(folder: str, path: str) -> None:
    """Removes a file of this folder; one elsewhere belongs to somebody else and stays."""
    if path.startswith(folder + os.sep):
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)
