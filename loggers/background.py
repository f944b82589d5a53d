"""A queue with one thread behind it: logging costs an append, writing happens elsewhere."""

import atexit
import os
import sys
import threading
import warnings
import weakref
from abc import ABC, abstractmethod
from collections import deque
from typing import Any

from minitorch.loggers.append_file import explain
from minitorch.loggers.logger import LoggerError

MAX_RECORDS = 100_000  # beyond this the caller writes too: memory stays bounded
MAX_BYTES = 64 << 20
WAKE_AT = 1000

_live: "weakref.WeakSet[Background]" = weakref.WeakSet()
_exiting = False


class Sink(ABC):
    """What stands behind the queue: one file of one format, a terminal, or a service.

    Attributes:
        path: The file, for messages; a name without a folder for what is no file.
        advice: What to do about records that could not be written.
    """

    path: str
    advice = "please report what was logged."

    @abstractmethod
    def open(self) -> None:
        """Create or reopen the file."""

    @abstractmethod
    def encode(self, item: Any) -> Any:
        """One logged item as a record of the file's format."""

    @abstractmethod
    def write(self, records: list[Any]) -> None:
        """Append all records, or raise and leave the file unchanged."""

    @abstractmethod
    def sync(self) -> None:
        """Wait until the disk has everything."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; `open` continues it."""


class Background:
    """Feeds a sink from a daemon thread; any thread may drain the queue itself.

    A failure in the thread is kept and raised once, by the next call. Records that could not be
    written wait in memory and are tried again. A forked child writes nothing.

    Args:
        sink: the file.
        label: the logger's name in messages.
        flush_secs: the longest time in seconds that a record waits in memory.
        wake_at: number of waiting records that wakes the thread before that time.
    """

    def __init__(
        self, sink: Sink, *, label: str, flush_secs: float, wake_at: int = WAKE_AT
    ) -> None:
        self._sink = sink
        self._label = label
        self._flush_secs = flush_secs
        self._wake_at = wake_at
        self._queue: deque[Any] = deque()
        self._held: list[Any] = []
        self._bytes = 0
        self._error: LoggerError | None = None
        self._ready = False
        self._open = False
        self._forked = False
        self._warned = False
        self._draining = False
        self._stopping = False
        self._orphaned = False
        # Reentrant, so that a flush inside a signal handler cannot wait for itself.
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Open the file and start the thread, so that a wrong path fails here."""
        with self._lock:
            if self._open or self._forked:
                return
            try:
                folder = os.path.dirname(self._sink.path)
                if folder:
                    os.makedirs(folder, exist_ok=True)
                self._sink.open()
            except OSError as error:
                raise explain(self._label, self._sink.path, error) from error
            self._open = True
            self._stopping = False
            self._wake.clear()
            _live.add(self)
            if not _exiting:
                self._thread = threading.Thread(
                    target=self._run, name=f"{self._label} writer", daemon=True
                )
                self._thread.start()
                self._ready = True

    def put(self, item: Any, nbytes: int = 0) -> None:
        """Queue one item; raises what the thread met since the last call."""
        queue = self._queue
        queue.append(item)
        if nbytes:
            self._bytes += nbytes
            self._attend()
        elif not self._ready or len(queue) >= self._wake_at:
            self._attend()

    def wake(self) -> None:
        """Let the thread write soon; does not wait."""
        if self._ready:
            self._wake.set()

    def flush(self) -> None:
        """Write and sync everything in the calling thread."""
        if self._forked:
            return
        with self._lock:
            if self._open:
                try:
                    self._drain(sync=True)
                except LoggerError:
                    self._take_kept()
                    raise
        self._raise_kept()

    def close(self) -> None:
        """Flush, stop the thread, close the file. `put` opens it again."""
        if self._forked or not self._open:
            return
        self._stopping = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._ready = self._open = False
            self._thread = None
            try:
                self._drain(sync=True)
            except LoggerError:
                self._queue.clear()
                self._held.clear()
                self._take_kept()
                raise
            finally:
                self._sink.close()
        self._raise_kept()

    def _attend(self) -> None:
        if self._forked:
            self._refuse_fork()
            return
        if not self._open:
            try:
                self.start()
            except LoggerError:
                self._queue.clear()
                raise
        self._raise_kept()
        if self._thread is None or len(self._queue) >= MAX_RECORDS or self._bytes > MAX_BYTES:
            with self._lock:
                self._drain()
        elif not self._wake.is_set():
            self._wake.set()

    def _refuse_fork(self) -> None:
        self._queue.clear()
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._label}: this process ({os.getpid()}) was forked from the one that opened "
                f"{self._sink.path}, so nothing is logged here. Make a logger in the child.",
                RuntimeWarning,
                stacklevel=5,
            )

    def _raise_kept(self) -> None:
        error = self._take_kept()
        if error is not None:
            raise error

    def _take_kept(self) -> LoggerError | None:
        error, self._error = self._error, None
        self._ready = self._open and self._thread is not None
        return error

    def _run(self) -> None:
        while True:
            self._wake.wait(self._flush_secs)
            if self._stopping:
                return
            if self._orphaned:
                self._thread = None
                self.close_quietly()
                return
            self._wake.clear()
            if self._queue or self._held:
                with self._lock:
                    try:
                        self._drain()
                    except LoggerError as error:
                        self._keep(error)

    def _keep(self, error: LoggerError) -> None:
        self._error = error
        self._ready = False

    def _drain(self, sync: bool = False) -> None:
        if self._draining:
            return
        self._draining = True
        try:
            self._bytes = 0
            for _ in range(len(self._queue)):
                item = self._queue.popleft()
                try:
                    self._held.append(self._sink.encode(item))
                except Exception as error:
                    self._keep(self._broken("encode a record", error))
            if self._held:
                self._write_held()
            if sync:
                self._sink.sync()
        except OSError as error:
            raise explain(self._label, self._sink.path, error, self._waiting()) from error
        finally:
            self._draining = False

    def _write_held(self) -> None:
        try:
            self._sink.write(self._held)
        except OSError:
            raise
        except Exception as error:
            self._held.clear()
            raise self._broken("write records", error) from error
        self._held.clear()

    def _waiting(self) -> str:
        lost = len(self._held) - MAX_RECORDS
        if lost > 0:
            del self._held[:lost]
            return f"The oldest {lost} records were dropped. "
        if self._held and self._open:
            return f"{len(self._held)} records wait in memory and are tried again. "
        return f"{len(self._held)} records were not written. " if self._held else ""

    def _broken(self, action: str, error: Exception) -> LoggerError:
        failure = LoggerError(
            f"{self._label}: cannot {action} for {self._sink.path}: {error!r}. It was left out; "
            f"{self._sink.advice}"
        )
        failure.__cause__ = error
        return failure

    def close_quietly(self) -> None:
        """Close where nobody can catch an error: print it."""
        if threading.current_thread() is self._thread:
            # The garbage collector may find the dropped logger in the middle of a write.
            self._orphaned = True
            self._wake.set()
            return
        try:
            self.close()
        except LoggerError as error:
            print(f"minitorch: {error}", file=sys.stderr)


def _close_all() -> None:
    # From here on a thread may never run again (starting one can hang), so that callers write.
    global _exiting
    _exiting = True
    for background in list(_live):
        background.close_quietly()


def _disown_in_child() -> None:
    for background in list(_live):
        background._forked = True
        background._ready = False


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_in_child)
