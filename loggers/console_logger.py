"""Logger that prints a line of numbers now and then."""

import sys
from typing import Any, TextIO, final

from minitorch.loggers.background import Sink
from minitorch.loggers.queued_logger import FLUSH_SECS, QueuedLogger


@final
class ConsoleLogger(QueuedLogger):
    """Prints `step 150, epoch 2: train/loss=0.5213` for every n-th call with the same names.

    Plain lines, for terminals and log files alike; a progress bar is not needed beside it.

    Args:
        every_n: Print every n-th of the calls with the same names.
        stream: Where to; default stderr.
        prefix: text put before each name, with a "-" between.
        flush_secs: the longest time in seconds that a line waits in memory.
    """

    def __init__(
        self,
        every_n: int = 1,
        stream: TextIO | None = None,
        prefix: str = "",
        *,
        flush_secs: float = FLUSH_SECS,
    ) -> None:
        super().__init__(prefix, flush_secs)
        if every_n < 1:
            raise ValueError(f"every_n must be at least 1. Got {every_n}. Print all lines with 1.")
        self._every_n = every_n
        self._stream = stream

    @property
    def name(self) -> str:
        """ "console"."""
        return "console"

    @property
    def version(self) -> int:
        """0: nothing is kept."""
        return 0

    def log_text(self, tag: str, text: str, step: int) -> None:
        """Print a text."""
        (self._background or self._start()).put((0.0, step, {tag: str(text)}))

    @property
    def _label(self) -> str:
        return "ConsoleLogger"

    def _wake_at(self) -> int:
        return 1  # somebody is looking

    def _make_sink(self) -> Sink:
        return _Console(self._stream, self._every_n)


class _Console(Sink):
    path = "the console"
    advice = "pass another stream."

    def __init__(self, stream: TextIO | None, every_n: int) -> None:
        self._stream = stream
        self._every_n = every_n
        self._calls: dict[tuple[str, ...], int] = {}

    def open(self) -> None:
        return None

    def encode(self, item: tuple[float, int, dict[str, Any]]) -> str:
        _, step, row = item
        names = tuple(row)
        seen = self._calls.get(names, 0)
        self._calls[names] = seen + 1
        if seen % self._every_n:
            return ""
        values = (f"{name}={_text(value)}" for name, value in row.items() if name != "epoch")
        epoch = f", epoch {row['epoch']}" if "epoch" in row else ""
        return f"step {step}{epoch}: {', '.join(values)}\n"

    def write(self, records: list[str]) -> None:
        text = "".join(records)
        if text:
            stream = sys.stderr if self._stream is None else self._stream
            stream.write(text)
            stream.flush()

    def sync(self) -> None:
        return None

    def close(self) -> None:
        return None


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
