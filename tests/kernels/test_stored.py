"""Compiled bodies on disk are used without what numba needs to compile."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

numba = pytest.importorskip("numba", reason="numba is not installed")

PROGRAM = """
import sys
import numpy as np
from minitorch.kernels import load
optim, sums = load("optim"), np.empty(2)
x = np.linspace(-1, 1, 20000, dtype=np.float32)
for kind in sys.argv[1:]:
    optim.sum_squares(x.astype(kind), np.array([0, 8192]), np.array([8192, 20000]), sums)
    print(round(sums.sum(), 3), "numba.np.arraymath" in sys.modules)
"""


def test_what_is_on_disk_needs_no_compiler_and_the_rest_still_compiles(tmp_path: Path) -> None:
    def run(*kinds: str) -> list[str]:
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *kinds]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run("f4") == ["6667.333 True"]
    assert run("f4", "f8") == ["6667.333 False", "6667.333 True"]


def _third(x: float) -> float:
    return x / 3


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Makes the compiled function anew, as another process does."""
    from minitorch.kernels.cpu.stored import _say_once, stored

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    _say_once.cache_clear()
    yield lambda: stored()(_third)
    _say_once.cache_clear()


def _zeros(data: bytes) -> bytes:
    return data[:100] + bytes(len(data) - 100)


def _flip(data: bytes) -> bytes:
    """One bit of the machine code is another one, which unpickling does not see."""
    place = data.index(b"ELF") if b"ELF" in data else len(data) // 2
    return data[: place + 500] + bytes([data[place + 500] ^ 1]) + data[place + 501 :]


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("nbi", lambda data: b""),
        ("nbi", lambda data: data[: len(data) // 2]),
        ("nbi", lambda data: bytes(len(data))),
        ("nbc", lambda data: b""),
        ("nbc", lambda data: data[: len(data) // 2]),
        ("nbc", _zeros),
        ("nbc", _flip),
    ],
    ids=["no list", "half a list", "zeros", "no code", "half the code", "zeros in it", "a bit"],
)
def test_damaged_files_are_written_anew(
    ending: str,
    damage: Callable[[bytes], bytes],
    made: Callable[[], Any],
    tmp_path: Path,
) -> None:
    assert made()(6.0) == 2
    for file in tmp_path.rglob(f"*.{ending}"):
        file.write_bytes(damage(file.read_bytes()))
    for hits in (0, 1):
        third = made()
        assert third(6.0) == 2
        assert sum(third.stats.cache_hits.values()) == hits


def test_a_full_disk_ends_no_program(
    made: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from minitorch.kernels.cpu import stored

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(stored._Files, "_open_for_write", full)
        third = made()
        with pytest.warns(RuntimeWarning, match="cannot be kept in .*: No space left.* Make room"):
            assert third(6.0) == 2
        assert third(6) == 2, "said once"
    assert made()(6.0) == 2
