"""What the loggers that write on a background thread have in common."""

from __future__ import annotations

import threading
import weakref
from abc import abstractmethod
from collections.abc import Mapping
from time import time
from typing import Any

from minitorch.loggers.background import Background, Sink
from minitorch.loggers.logger import Logger
from minitorch.loggers.values import check_step, check_tag, to_number

FLUSH_SECS = 5.0


class QueuedLogger(Logger):
    """Base of loggers whose records wait in memory until a thread writes them.

    Args:
        prefix: text put before each name, with a "-" between.
        flush_secs: the longest time in seconds that a record waits in memory.
    """

    def __init__(self, prefix: str, flush_secs: float) -> None:
        if not flush_secs > 0:
            raise ValueError(f"flush_secs must be positive. Got {flush_secs}. The default is 5.")
        self.prefix = prefix
        self._flush_secs = flush_secs
        self._names: dict[str, str] = {}
        self._background: Background | None = None
        self._lock = threading.RLock()

    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Record numbers under their names at one step; costs a few microseconds.

        Args:
            metrics: name → number; one-element arrays of any library are accepted.
            step: x axis, an integer.

        Raises:
            TypeError: a value is not a real number, a name not a str, or the step not an integer.
            ValueError: a value has several elements.
            LoggerError: an earlier record could not be written (raised once).
        """
        if type(step) is not int or not -(2**63) <= step < 2**63:
            step = check_step(step)
        names = self._names
        row = {}
        for name, value in metrics.items():
            if type(value) is not float:
                value = to_number(name, value)
            row[names[name] if name in names else self._new_name(name)] = value
        if row:
            (self._background or self._start()).put((time(), step, row))

    def save(self) -> None:
        """Let the background thread write now; does not wait."""
        if self._background is not None:
            self._background.wake()

    def flush(self) -> None:
        """Write everything that was logged and sync the file.

        Raises:
            LoggerError: something could not be written.
        """
        if self._background is not None:
            self._background.flush()

    def finalize(self, status: str) -> None:
        """Flush and close the file; logging again reopens it.

        Args:
            status: how the run ended: "success", "failed", …

        Raises:
            LoggerError: something could not be written.
        """
        if self._background is not None:
            self._background.close()

    @property
    @abstractmethod
    def _label(self) -> str:
        """The logger in messages."""

    @abstractmethod
    def _make_sink(self) -> Sink:
        """Where the records go."""

    def _wake_at(self) -> int:
        """Number of waiting records that wakes the background thread."""
        return 1000

    def _check_name(self, name: str) -> None:
        """Refuse a name that the format cannot hold."""
        return None

    def _new_name(self, name: str) -> str:
        full = f"{self.prefix}-{check_tag(name)}" if self.prefix else check_tag(name)
        self._check_name(full)
        self._names[name] = full
        return full

    def _start(self) -> Background:
        with self._lock:
            if self._background is None:
                background = Background(
                    self._make_sink(),
                    label=self._label,
                    flush_secs=self._flush_secs,
                    wake_at=self._wake_at(),
                )
                background.start()
                weakref.finalize(self, background.close_quietly).atexit = False
                self._background = background
            return self._background

    def __getstate__(self) -> dict[str, Any]:
        # A copy, here or in another process, continues the run with a queue of its own.
        return {**self.__dict__, "_background": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
