"""Names of files that a process is about to write, seen by every process that shares the folder."""

from __future__ import annotations

import contextlib
import os
import platform

_ENDING = ".taken"


def reserve(path: str) -> bool:
    """Takes a file's name for this process, until `end`; False if another process has it.

    A small hidden file beside it says so, which only one process can make. Where none can be made
    the name counts as taken: writing the file itself will say what is wrong.

    Args:
        path: The file, which need not exist, nor its folder.
    """
    mark = _mark(path)
    for _ in range(2):
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(mark, "x", encoding="utf-8") as file:
                file.write(f"{platform.node()} {os.getpid()}")
            return True
        except FileExistsError:
            if not _left_behind(mark):
                return False
            with contextlib.suppress(FileNotFoundError):
                os.remove(mark)
        except OSError:
            return True
    return False


def end(path: str) -> None:
    """The file is there, or will not come."""
    with contextlib.suppress(OSError):
        os.remove(_mark(path))


def clear(folder: str) -> None:
    """Removes what killed processes of this host left."""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        mark = os.path.join(folder, name)
        if name.startswith(".") and name.endswith(_ENDING) and _left_behind(mark):
            with contextlib.suppress(OSError):
                os.remove(mark)


def _mark(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}{_ENDING}")


def _left_behind(mark: str) -> bool:
    """Whether the process that made it has ended, or is this one, which would know of it."""
    from minitorch.io.atomic import is_running

    try:
        with open(mark, encoding="utf-8") as file:
            host, _, number = file.read().rpartition(" ")
    except OSError:
        return False
    if host != platform.node() or not number.isdigit() or os.name != "posix":
        return False
    return int(number) == os.getpid() or not is_running(int(number))
