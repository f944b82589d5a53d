"""Replacing a file so that at every moment either the old or the new content is there in full."""

import contextlib
import errno
import itertools
import os
import platform
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from minitorch.errors import CheckpointError

_count = itertools.count()
_BUFFER = 1 << 20


@contextlib.contextmanager
def replacing(
    path: str | os.PathLike[str], check: Callable[[BinaryIO, str], None] | None = None
) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path` that takes its place when the block ends well.

    The order is: write, fsync, check, rename over `path`, fsync of the folder. After an exception
    the temporary file is removed; what a killed process left is removed by the next save to `path`.

    Args:
        path: the file.
        check: gets the complete file, opened again for reading, and the name of `path`; raises if
            it is not what was written.

    Raises:
        CheckpointError: the file system refused a step; the previous file is unchanged.
    """
    target = os.path.abspath(os.fspath(path))
    folder, name = os.path.split(target)
    temporary = temporary_beside(target)
    try:
        clear_folder(folder, name)
        try:
            with open(temporary, "xb", buffering=_BUFFER) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if check is not None:
                _read_back(temporary, target, check)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise CheckpointError(
            f"save: {target} could not be written ({error}). A file that was there before is "
            "unchanged. Check that the folder exists, is writable and has free space."
        ) from error
    sync_folder(folder)


def temporary_beside(target: str) -> str:
    """A fresh name in the folder of a file, of those that `clear_folder` removes."""
    folder, name = os.path.split(target)
    return os.path.join(folder, f"{_prefix(name)}{os.getpid()}-{next(_count)}.tmp")


def _prefix(name: str) -> str:
    # Cut, because file systems limit a name to 255 bytes.
    return f".{name[:40]}.{platform.node()[:40]}-"


def _read_back(temporary: str, target: str, check: Callable[[BinaryIO, str], None]) -> None:
    with open(temporary, "rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):  # from the disk, not from memory
            with contextlib.suppress(OSError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        check(file, target)


def clear_folder(folder: str, name: str | None = None) -> None:
    """Removes what killed processes of this host left of the file `name`, or of any."""
    if os.name != "posix" or not os.path.isdir(folder):
        return
    start = rf"\..+{re.escape(_prefix('')[1:])}" if name is None else re.escape(_prefix(name))
    pattern = re.compile(rf"{start}(\d+)-\d+\.tmp")
    for left in os.listdir(folder):
        found = pattern.fullmatch(left)
        if found and not is_running(int(found[1])):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, left))


def is_running(pid: int) -> bool:
    """Whether this host has a process of this number; on POSIX systems."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def sync_folder(folder: str) -> None:
    """Brings the names in a folder to the disk.

    Raises:
        CheckpointError: The disk refused.
    """
    if os.name != "posix":
        return
    try:
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.ENOTSUP):  # not every file system can
            return
        raise CheckpointError(
            f"save: the new file in {folder} is complete, but the folder could not be synced "
            f"({error}): after a power failure the previous file may be back. Check the disk."
        ) from error
