"""Counts what costs time on a GPU: transfers, waits and allocations, in total and by line."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

KINDS = (
    "host_to_device",
    "device_to_host",
    "device_to_device",
    "synchronisations",
    "allocations",
)
_HERE = str(Path(__file__).parent)
_NUMPY = str(Path(np.__file__).parent)
# Transfers of a framework pass through its backend; the line that wants to be known is above it.
_BOUNDARY = "/minitorch/backend/"


@dataclass(frozen=True)
class Tally:
    """How often something happened, and how many bytes it moved."""

    calls: int = 0
    bytes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.calls + other.calls, self.bytes + other.bytes)

    def __sub__(self, other: Tally) -> Tally:
        return Tally(self.calls - other.calls, self.bytes - other.bytes)


class Snapshot:
    """Tallies of every kind, in total and by the source line that caused them."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, Tally]] = {kind: {} for kind in KINDS}

    def by_line(self, kind: str) -> dict[str, Tally]:
        """`{"folder/file.py:12": Tally}` for one kind."""
        return dict(self._lines[kind])

    def total(self, kind: str) -> Tally:
        """The tally of one kind over all lines."""
        return sum(self._lines[kind].values(), Tally())

    @property
    def host_to_device(self) -> Tally:
        """Copies from the host."""
        return self.total("host_to_device")

    @property
    def device_to_host(self) -> Tally:
        """Copies to the host."""
        return self.total("device_to_host")

    @property
    def device_to_device(self) -> Tally:
        """Copies between two devices."""
        return self.total("device_to_device")

    @property
    def synchronisations(self) -> Tally:
        """Points where the host waited for the device."""
        return self.total("synchronisations")

    @property
    def allocations(self) -> Tally:
        """New device buffers."""
        return self.total("allocations")

    def report(self, *kinds: str) -> str:
        """One text line for each source line, for the message of a failing test."""
        rows = [
            f"{kind} {line}: {tally.calls} calls, {tally.bytes} bytes"
            for kind in kinds or KINDS
            for line, tally in sorted(self._lines[kind].items())
        ]
        return "\n".join(rows) or "nothing was counted"

    def _copy(self) -> Snapshot:
        twin = Snapshot()
        twin._lines = {kind: dict(lines) for kind, lines in self._lines.items()}
        return twin

    def _since(self, start: Snapshot) -> None:
        for kind, lines in self._lines.items():
            before = start._lines[kind]
            rest = {line: tally - before.get(line, Tally()) for line, tally in lines.items()}
            self._lines[kind] = {line: tally for line, tally in rest.items() if tally.calls}


class Counters(Snapshot):
    """The running counts of the pretend GPU; safe to use from several threads."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def record(self, kind: str, nbytes: int = 0) -> None:
        """Adds one event to the first line outside of this package, NumPy and the backend."""
        line = _caller()
        with self._lock:
            lines = self._lines[kind]
            lines[line] = lines.get(line, Tally()) + Tally(1, nbytes)

    def reset(self) -> None:
        """Forgets everything."""
        with self._lock:
            self._lines = {kind: {} for kind in KINDS}

    @contextmanager
    def watch(self) -> Iterator[Snapshot]:
        """Gives a snapshot that holds, after the block, what the block caused."""
        start = self._copy()
        seen = Snapshot()
        yield seen
        seen._lines = self._copy()._lines
        seen._since(start)


def _caller() -> str:
    frame = sys._getframe(2)
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return f"{'/'.join(path.parts[-2:])}:{frame.f_lineno}"


def _is_inside(filename: str) -> bool:
    if filename.startswith(_NUMPY) or _BOUNDARY in filename:
        return True
    return filename.startswith(_HERE) and not Path(filename).name.startswith("test_")


counters = Counters()
