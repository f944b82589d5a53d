"""Logger that writes a table of numbers."""

import csv
import io
import os
import re
from typing import Any, final

from minitorch.loggers.append_file import AppendFile
from minitorch.loggers.background import Sink
from minitorch.loggers.file_logger import FLUSH_SECS, FileLogger

_QUOTE = '"'
_SPECIAL = re.compile(r'[,"\r\n]')


@final
class CSVLogger(FileLogger):
    """Writes `save_dir/name/version_N/metrics.csv`: a row for each call, a column for each metric.

    The first column is `step`. Rows are appended; when a new column appears the file is replaced
    by one with the wider header. A second living logger of the same folder writes
    `metrics_1.csv`; a later run continues the file.

    Args:
        save_dir: folder that holds all experiments.
        name: name of the experiment; "" for no folder of its own.
        version: int for `version_N`, a text for that folder, None for the next free number; another
            logger's `version` shares its folder.
        prefix: text put before each name, with a "-" between.
        flush_logs_every_n_steps: rows that wait in memory before they are written.
        flush_secs: the longest time in seconds that a row waits in memory.
    """

    def __init__(
        self,
        save_dir: str | os.PathLike[str],
        name: str | None = "default",
        version: int | str | None = None,
        prefix: str = "",
        flush_logs_every_n_steps: int = 100,
        *,
        flush_secs: float = FLUSH_SECS,
    ) -> None:
        super().__init__(save_dir, name, version, prefix, flush_secs)
        if flush_logs_every_n_steps < 1:
            raise ValueError(
                "flush_logs_every_n_steps must be at least 1. "
                f"Got {flush_logs_every_n_steps}. The default is 100."
            )
        self._rows_in_memory = flush_logs_every_n_steps

    def _wake_at(self) -> int:
        return self._rows_in_memory

    def _check_name(self, name: str) -> None:
        if name == "step":
            raise ValueError(
                "a metric must not be called 'step' in a CSVLogger: that is the first column. "
                "Log it as 'train/step', or pass prefix=."
            )

    def _make_sink(self) -> Sink:
        return _CSVFile(self.log_dir)


class _CSVFile(Sink):
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.path = os.path.join(folder, "metrics.csv")
        self._own: str | None = None

    def open(self) -> None:
        self._file = AppendFile.claim(self._folder, "metrics.csv", self._own)
        self.path = self._own = self._file.path
        lines = io.StringIO(self._file.read().decode(), newline="")
        reader = csv.reader(lines)
        self._columns = next(reader, [])
        lines.seek(0)
        header = [lines.readline() for _ in range(reader.line_num)]
        self._header_bytes = len("".join(header).encode())

    def encode(self, item: tuple[float, int, dict[str, Any]]) -> dict[str, Any]:
        return {"step": item[1], **item[2]}

    def write(self, records: list[dict[str, Any]]) -> None:
        known = set(self._columns)
        new = dict.fromkeys(name for row in records for name in row if name not in known)
        columns = [*self._columns, *new]
        lines = "".join(
            ",".join([repr(row[name]) if name in row else "" for name in columns]) + "\n"
            for row in records
        )
        if not new:
            self._file.write(lines.encode())
            return
        header = _line(columns)
        body = self._file.read()[self._header_bytes :].replace(b"\r\n", b"\n")
        # Numbers hold no line breaks, so that a row can be widened at its end.
        self._file.replace(header + body.replace(b"\n", b"," * len(new) + b"\n") + lines.encode())
        self._columns, self._header_bytes = columns, len(header)

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.close()


def _line(names: list[str]) -> bytes:
    # csv.writer leaves a lone carriage return unquoted, which its reader takes for a new line.
    quoted = (
        f'"{name.replace(_QUOTE, _QUOTE * 2)}"' if _SPECIAL.search(name) else name for name in names
    )
    return (",".join(quoted) + "\n").encode()
