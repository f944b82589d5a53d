"""The threads that kernels share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import minitorch as mt
from minitorch.kernels import load

kernel_module = pytest.importorskip("minitorch.kernels.cpu.kernel", reason="numba is not installed")
team = pytest.importorskip("minitorch.kernels.cpu.team", reason="numba is not installed")


@kernel_module.kernel()
def _count(first, last, seen):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        seen[i] += 1


@kernel_module.kernel()
def _scale(first, last, x, factor, out):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        out[i] = x[i] * factor


@pytest.fixture(autouse=True)
def _helpers() -> None:
    load("special")  # which starts them


@pytest.mark.parametrize("items", [0, 1, 2, 15, 16, 17, 1000, 100_003])
@pytest.mark.parametrize("workers", [0, 1, 2, 3, 7])
def test_every_item_is_worked_on_once(items: int, workers: int) -> None:
    team.start(3)
    seen = np.zeros(max(items, 1), np.int64)
    for turn in range(1, 4):
        _count.share(workers, items, seen)
        assert (seen[:items] == turn).all()


@pytest.mark.parametrize("items", [1, 5, 40_000])
def test_a_kernel_knows_several_lists_of_types(items: int) -> None:
    for dtype in ("float32", "float64", "float32"):
        x = np.arange(items, dtype=dtype)
        out = np.empty_like(x)
        _scale(items, x, x.dtype.type(3), out)
        np.testing.assert_array_equal(out, x * 3)
        _scale(len(x[::2]), x[::2], x.dtype.type(2), out)
        np.testing.assert_array_equal(out[: len(x[::2])], x[::2] * 2)


def test_many_jobs_in_a_row_are_whole() -> None:
    team.start(3)
    seen = np.zeros(64, np.int64)
    for _ in range(3000):
        _count.share(4, 64, seen)
    assert (seen == 3000).all()


def test_callers_of_several_threads_do_not_disturb_each_other() -> None:
    def work(seen: np.ndarray) -> None:
        for _ in range(500):
            _count.share(3, len(seen), seen)

    arrays = [np.zeros(50 + i, np.int64) for i in range(4)]
    callers = [threading.Thread(target=work, args=(seen,)) for seen in arrays]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert all((seen == 500).all() for seen in arrays)


def test_without_helpers_the_caller_does_all() -> None:
    team.stop()
    seen = np.zeros(64, np.int64)
    _count.share(4, 64, seen)
    assert (seen == 1).all()
    team.start(2)
    _count.share(4, 64, seen)
    assert (seen == 2).all()


def test_sleeping_helpers_are_woken() -> None:
    team.start(1)
    for _ in range(20):
        for _ in range(10_000_000):
            if team._words[team.ASLEEP // 8]:
                break
        seen = np.zeros(64, np.int64)
        _count.share(2, 64, seen)
        assert (seen == 1).all()


def test_numba_shares_out_where_there_are_no_semaphores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "available", False)
    other = kernel_module.Kernel(_count.body)
    seen = np.zeros(100, np.int64)
    for turn, workers in enumerate((2, 1), 1):
        other.share(workers, 100, seen)
        assert (seen == turn).all()


ENDINGS = {
    "an exit in the middle": "sys.exit(0)",
    "the end": "",
    "a caller that is left alone": (
        "import threading; threading.Thread(target=lambda: [mt.erf(x) for _ in range(200)]).start()"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_ends_with_its_helpers(ending: str) -> None:
    program = f"import sys, minitorch as mt\nx = mt.randn(100_000)\nmt.erf(x)\n{ENDINGS[ending]}"
    result = subprocess.run([sys.executable, "-c", program], timeout=120, env=os.environ)
    assert result.returncode == 0


def test_sums_do_not_depend_on_the_number_of_threads() -> None:
    before = mt.get_num_threads()
    x = mt.randn(64, 4096)
    found = set()
    for number in (1, 2, 4):
        mt.set_num_threads(number)
        found.add(mt.nn.functional.layer_norm(x, (4096,)).numpy().tobytes())
    mt.set_num_threads(before)
    assert len(found) == 1
