"""One number governs compiled kernels and matrix products."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_info

import minitorch as mt
from minitorch.kernels import threads


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    before = mt.get_num_threads()
    yield
    mt.set_num_threads(before)


def test_the_number_reaches_kernels_and_blas() -> None:
    mt.set_num_threads(1)
    mt.erf(mt.ones(3000))
    assert mt.get_num_threads() == 1
    assert threads.count() == 1
    pools = [p for p in threadpool_info() if p["user_api"] == "blas" and "numpy" in p["filepath"]]
    assert {pool["num_threads"] for pool in pools} == {1}


def test_the_number_reaches_kernels_of_other_threads() -> None:
    mt.set_num_threads(1)
    seen: list[int] = []

    def work() -> None:
        mt.erf(mt.ones(3000))
        seen.append(threads.count())

    for _ in range(2):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [1, 1]


@pytest.mark.parametrize("number", [0, -1, 1.5, True, "2"])
def test_wrong_numbers(number: object) -> None:
    with pytest.raises(mt.ArgumentError, match="must be a positive integer"):
        mt.set_num_threads(number)  # type: ignore[arg-type]


def test_a_thread_that_computes_alone_uses_one() -> None:
    mt.set_num_threads(2)
    seen: list[int] = []

    def work() -> None:
        threads.compute_alone()
        mt.erf(mt.ones(3000))
        seen.append(threads.count())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [1]


FROM_ENVIRONMENT = """
import minitorch as mt
print(mt.get_num_threads())
mt.erf(mt.ones(3000))
from minitorch.kernels import threads
print(threads.count())
"""


def _run(program: str, **environment: str) -> list[str]:
    out = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
        check=True,
    )
    return out.stdout.split()


def test_the_environment_limits_kernels_too() -> None:
    assert _run(FROM_ENVIRONMENT, OMP_NUM_THREADS="1") == ["1", "1"]


STEPS = """
import resource
import minitorch as mt
model = mt.nn.Sequential(mt.nn.Linear(300, 3000), mt.nn.ReLU(), mt.nn.Linear(3000, 10))
optimizer = mt.optim.Adam(model.parameters())
x = mt.randn(500, 300)
faults = []
for _ in range(8):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print((faults[-1] - faults[-5]) // 4)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_steps_take_no_new_memory_from_the_system() -> None:
    (pages,) = _run(STEPS)
    assert int(pages) < 300  # an activation alone has 1500
