"""The table of loggers, a reader for each format, and a pretend device array."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minitorch.loggers import CSVLogger, JSONLLogger, TensorBoardLogger

Rows = list[tuple[int, dict[str, float]]]


def event_files(folder: str | Path) -> list[Path]:
    return sorted(Path(folder).glob("*tfevents*"))


def load_events(folder: str | Path) -> list[Any]:
    """Every event of a folder's files, by TensorBoard's own loader (it checks the checksums)."""
    from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

    return [e for file in event_files(folder) for e in LegacyEventFileLoader(str(file)).Load()]


def read_tensorboard(folder: str | Path) -> Rows:
    rows = []
    for event in load_events(folder):
        values = {v.tag: v.simple_value for v in event.summary.value if v.HasField("simple_value")}
        if values:
            rows.append((event.step, values))
    return rows


def read_csv(folder: str | Path) -> Rows:
    rows = []
    for file in sorted(Path(folder).glob("metrics*.csv")):
        with open(file, newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                assert None not in row, "a row is longer than the header"
                assert None not in row.values(), "a row is shorter than the header"
                step = int(row.pop("step"))
                rows.append((step, {name: float(x) for name, x in row.items() if x != ""}))
    return rows


def _refuse_constant(text: str) -> None:
    raise AssertionError(f"{text} is not JSON")


def read_jsonl(folder: str | Path) -> Rows:
    rows = []
    for file in sorted(Path(folder).glob("metrics*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line, parse_constant=_refuse_constant)
            assert row.pop("wall_time") > 1e9
            rows.append((row.pop("step"), {name: float(x) for name, x in row.items()}))
    return rows


@dataclass(frozen=True)
class Row:
    make: Callable[..., Any]
    read: Callable[[str | Path], Rows]
    pattern: str
    exact: bool  # float64 is kept

    def __str__(self) -> str:
        return self.make.__name__


LOGGERS = [
    Row(TensorBoardLogger, read_tensorboard, "*tfevents*", exact=False),
    Row(CSVLogger, read_csv, "metrics*.csv", exact=True),
    Row(JSONLLogger, read_jsonl, "metrics*.jsonl", exact=True),
]


@pytest.fixture(params=LOGGERS, ids=str, scope="session")
def row(request: pytest.FixtureRequest) -> Row:
    """One line of the table of loggers."""
    return request.param


@pytest.fixture
def events() -> Callable[[str | Path], list[Any]]:
    return load_events


@pytest.fixture
def accumulate() -> Callable[[str | Path], Any]:
    """TensorBoard's accumulator over a folder, with nothing sampled away."""

    def accumulate(folder: str | Path) -> Any:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        sizes = {name: 0 for name in ("scalars", "histograms", "images", "tensors", "graph")}
        return EventAccumulator(str(folder), size_guidance=sizes).Reload()

    return accumulate


class DeviceArray:
    """Like a CuPy array: `.get()` copies to the host, implicit conversion is refused."""

    def __init__(self, values: Any, dtype: Any = np.float32) -> None:
        self._values = np.asarray(values, dtype)
        self.shape, self.dtype = self._values.shape, self._values.dtype

    def get(self) -> np.ndarray:
        return self._values.copy()

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class TensorLike:
    """Like a tensor on a device that requires a gradient: detach, then cpu, then numpy."""

    def __init__(self, values: Any, state: str = "graph") -> None:
        self._values, self._state = np.asarray(values, np.float32), state

    def detach(self) -> "TensorLike":
        return TensorLike(self._values, "device")

    def cpu(self) -> "TensorLike":
        assert self._state == "device"
        return TensorLike(self._values, "host")

    def numpy(self) -> np.ndarray:
        assert self._state == "host"
        view = self._values.view()
        view.flags.writeable = False
        return view


@pytest.fixture(params=[np.asarray, DeviceArray, TensorLike], ids=["numpy", "cupy-like", "tensor"])
def array_type(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program in a fresh interpreter in the test's folder."""

    def python(program: str, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, *args],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return python


class Disk:
    """Makes writes to regular files fail half-way with an error of choice."""

    def __init__(self, real_write: Callable[[int, Any], int]) -> None:
        self._real_write = real_write
        self.error: BaseException | None = None
        self.once = False
        self.failures = 0

    def write(self, fd: int, data: Any) -> int:
        error = self.error
        if error is None:
            return self._real_write(fd, data)
        if self.once:
            self.error = None
        self._real_write(fd, bytes(data)[: len(data) // 2])
        self.failures += 1
        raise error


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(os.write)
    monkeypatch.setattr(os, "write", disk.write)
    return disk
