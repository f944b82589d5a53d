"""Logger that writes one JSON object a line."""

import json
import os
from math import isfinite
from time import time
from typing import Any, final

from minitorch.loggers.append_file import AppendFile
from minitorch.loggers.background import Sink
from minitorch.loggers.file_logger import FLUSH_SECS, FileLogger
from minitorch.loggers.values import check_step, non_finite

_ENCODE = json.JSONEncoder(allow_nan=False).encode
_RESERVED = ("step", "wall_time")


@final
class JSONLLogger(FileLogger):
    """Writes `save_dir/name/version_N/metrics.jsonl`: one object a line, strict JSON.

    A line holds `step`, `wall_time` (seconds since 1970) and the metrics; a metric that is not
    finite is the text "NaN", "Infinity" or "-Infinity", which `float(...)` reads. A second living
    logger of the same folder writes `metrics_1.jsonl`; a later run continues the file.

    Args:
        save_dir: folder that holds all experiments.
        name: name of the experiment; "" for no folder of its own.
        version: int for `version_N`, a text for that folder, None for the next free number; another
            logger's `version` shares its folder.
        prefix: text put before each name, with a "-" between.
        flush_secs: the longest time in seconds that a record waits in memory.
    """

    def __init__(
        self,
        save_dir: str | os.PathLike[str],
        name: str | None = "default",
        version: int | str | None = None,
        prefix: str = "",
        *,
        flush_secs: float = FLUSH_SECS,
    ) -> None:
        super().__init__(save_dir, name, version, prefix, flush_secs)

    def log_text(self, tag: str, text: str, step: int) -> None:
        """Record a text under a name at one step."""
        name = self._names[tag] if tag in self._names else self._new_name(tag)
        (self._background or self._start()).put((time(), check_step(step), {name: str(text)}))

    def _check_name(self, name: str) -> None:
        if name in _RESERVED:
            raise ValueError(
                f"a metric must not be called {name!r} in a JSONLLogger: each line has that key. "
                f"Log it as {'train/' + name!r}, or pass prefix=."
            )

    def _make_sink(self) -> Sink:
        return _JSONLFile(self.log_dir)


class _JSONLFile(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.path = os.path.join(folder, "metrics.jsonl")
        self._own: str | None = None

    def open(self) -> None:
        self._file = AppendFile.claim(self._folder, "metrics.jsonl", self._own)
        self.path = self._own = self._file.path

    def encode(self, item: tuple[float, int, dict[str, Any]]) -> bytes:
        wall_time, step, row = item
        line: dict[str, Any] = {"step": step, "wall_time": wall_time}
        for name, value in row.items():
            finite = not isinstance(value, float) or isfinite(value)
            line[name] = value if finite else non_finite(value)
        return _ENCODE(line).encode() + b"\n"

    def write(self, records: list[bytes]) -> None:
        self._file.write(b"".join(records))

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()
