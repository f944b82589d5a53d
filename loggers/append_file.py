"""A file that only grows, in whole records: a failed write leaves it as it was before."""

import errno
import itertools
import os
import re
from collections.abc import Iterator

from minitorch.loggers.logger import LoggerError

try:
    import fcntl
except ImportError:  # Windows: a run then gets a fresh file instead of sharing by lock
    fcntl = None  # type: ignore[assignment]

_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)

_FIXES = {
    errno.ENOSPC: "Free space on this disk, or pass a save_dir on another one.",
    errno.EDQUOT: "Free space in your quota, or pass a save_dir on another disk.",
    errno.EACCES: "Give this user write permission there, or pass another save_dir.",
    errno.EPERM: "Give this user write permission there, or pass another save_dir.",
    errno.EROFS: "Pass a save_dir on a disk that is writable.",
    errno.ENOENT: "Keep the run's folder in place until training ends, or pass another save_dir.",
    errno.ENOTDIR: "A file stands where the folder should be: remove it, or pass another save_dir.",
    errno.EEXIST: "A file stands where the folder should be: remove it, or pass another save_dir.",
}


def explain(label: str, path: object, error: OSError, extra: str = "") -> LoggerError:
    """The error of a logger whose file or folder failed: logger, path, reason, fix."""
    fix = _FIXES.get(error.errno or 0, "Check this path, or pass another save_dir.")
    reason = error.strerror or str(error)
    return LoggerError(f"{label}: cannot write {path}: {reason}. {extra}{fix}")


def claim_version(root: str) -> int:
    """Make the next free folder `version_N` under root; no other process gets the same one."""
    os.makedirs(root, exist_ok=True)
    names = (re.fullmatch(r"version_(\d+)", entry.name) for entry in os.scandir(root))
    number = max((int(match[1]) for match in names if match), default=-1) + 1
    while True:
        try:
            os.mkdir(os.path.join(root, f"version_{number}"))
        except FileExistsError:
            number += 1
        else:
            return number


def numbered(folder: str, name: str) -> Iterator[str]:
    """`folder/name.ext`, `folder/name_1.ext`, `folder/name_2.ext`, …"""
    stem, suffix = os.path.splitext(name)
    yield os.path.join(folder, name)
    for number in itertools.count(1):
        yield os.path.join(folder, f"{stem}_{number}{suffix}")


class AppendFile:
    """An unbuffered descriptor on a file that this object alone appends to.

    There is no user-space buffer, so that a forked child has nothing of ours to write twice.
    """

    def __init__(self, fd: int, path: str) -> None:
        self.path = path
        self._fd = fd
        self.size = os.fstat(fd).st_size
        self._linked = os.fstat(fd).st_nlink > 0

    @classmethod
    def create(cls, path: str) -> "AppendFile":
        """A new file; FileExistsError if the path is taken."""
        return cls(os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666), path)

    @classmethod
    def reopen(cls, path: str) -> "AppendFile":
        """An existing file of our own."""
        return cls(os.open(path, _FLAGS), path)

    @classmethod
    def claim(cls, folder: str, name: str, own: str | None = None) -> "AppendFile":
        """The first of `own`, `name.ext`, `name_1.ext`, … that no living logger writes to.

        A file left by a finished run is continued; a torn last line is cut off.
        """
        paths = itertools.chain([own] if own else [], numbered(folder, name))
        file = None
        while file is None:
            file = cls._claim_path(next(paths), own)
        file._cut_torn_line()
        return file

    @classmethod
    def _claim_path(cls, path: str, own: str | None) -> "AppendFile | None":
        if fcntl is None:
            try:
                return cls.reopen(path) if path == own else cls.create(path)
            except FileExistsError:
                return None
        while True:
            fd = os.open(path, _FLAGS | os.O_CREAT, 0o666)
            if not _lock(fd):
                os.close(fd)
                return None
            try:
                if os.path.samestat(os.fstat(fd), os.stat(path)):
                    return cls(fd, path)
            except FileNotFoundError:
                pass
            os.close(fd)  # the owner put a new file in its place meanwhile: look again

    def _cut_torn_line(self) -> None:
        data = self.read()
        if data and not data.endswith(b"\n"):
            self._truncate(data.rfind(b"\n") + 1)

    def read(self) -> bytes:
        """Everything in the file."""
        parts, offset = [], 0
        while part := os.pread(self._fd, 1 << 24, offset):
            parts.append(part)
            offset += len(part)
        return b"".join(parts)

    def write(self, data: bytes) -> None:
        """Append all of data, or raise and leave the file unchanged."""
        self._check_linked()
        try:
            _write_all(self._fd, data)
        except BaseException:
            self._truncate(self.size)
            raise
        self.size += len(data)

    def replace(self, data: bytes) -> None:
        """Put a file with this content in the place of the old one, in one step."""
        self._check_linked()
        path = f"{self.path}.{os.getpid()}.tmp"
        fd = os.open(path, _FLAGS | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            _lock(fd)
            _write_all(fd, data)
            os.fsync(fd)
            os.replace(path, self.path)
        except BaseException:
            os.close(fd)
            os.unlink(path)
            raise
        old, self._fd, self.size = self._fd, fd, len(data)
        os.close(old)

    def sync(self) -> None:
        """Wait until the disk has everything."""
        self._check_linked()
        os.fsync(self._fd)

    def close(self) -> None:
        """Give up the file and its lock; an inherited copy in a child does not keep the lock."""
        if fcntl is not None:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            except OSError:
                pass  # a file system without locks
        os.close(self._fd)

    def _check_linked(self) -> None:
        # Writing to a deleted file succeeds and is lost: only the link count tells.
        if self._linked and os.fstat(self._fd).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "the file was deleted while in use", self.path)

    def _truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self.size = size


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _lock(fd: int) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
