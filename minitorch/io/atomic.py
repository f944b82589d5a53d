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
    # Cut, because file systems limit a name to 255 bytes.
    prefix = f".{name[:40]}.{platform.node()[:40]}-"
    temporary = os.path.join(folder, f"{prefix}{os.getpid()}-{next(_count)}.tmp")
    try:
        _remove_left_overs(folder, prefix)
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
    _sync_folder(folder)


def _read_back(temporary: str, target: str, check: Callable[[BinaryIO, str], None]) -> None:
    with open(temporary, "rb", buffering=0) as file:
        if hasattr(os, "posix_fadvise"):  # from the disk, not from memory
            with contextlib.suppress(OSError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        check(file, target)


def clear_folder(folder: str) -> None:
    """Removes what killed processes of this host left of any file in a folder."""
    if os.name != "posix" or not os.path.isdir(folder):
        return
    host = re.escape(platform.node()[:40])
    pattern = re.compile(rf"\..+\.{host}-(\d+)-\d+\.tmp")
    for name in os.listdir(folder):
        found = pattern.fullmatch(name)
        if found and not _is_running(int(found[1])):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _remove_left_overs(folder: str, prefix: str) -> None:
    if os.name != "posix":
        return
    for name in os.listdir(folder):
        if name.startswith(prefix) and name.endswith(".tmp"):
            pid = name[len(prefix) :].partition("-")[0]
            if pid.isdigit() and not _is_running(int(pid)):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _sync_folder(folder: str) -> None:
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
