"""One number governs compiled kernels and matrix products."""

from __future__ import annotations

import ast
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
from minitorch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.norm = nn.Embedding(50, 64), nn.LayerNorm(64)
        self.attend = nn.MultiheadAttention(64, 4, batch_first=True)
        self.mix = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

    def forward(self, words):
        x = self.table(words)
        y = self.norm(x)
        x = x + self.attend(y, y, y, need_weights=False)[0]
        return (x + self.mix(self.norm(x))).mean((0, 1))

MODELS = {
    "mlp": lambda: (
        nn.Sequential(nn.Linear(300, 1000), nn.ReLU(), nn.Dropout(0.1), nn.Linear(1000, 10)),
        mt.randn(200, 300),
    ),
    "cnn": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 16, 3, padding=1), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(256, 10),
        ),
        mt.randn(32, 3, 16, 16),
    ),
    "transformer": lambda: (Block(), mt.randint(0, 50, (8, 40))),
}

def pages(name, captured):
    model, x = MODELS[name]()
    optimizer = mt.optim.Adam(model.parameters())
    loss = lambda x: model(x).square().mean()
    step = mt.compile(loss) if captured else loss
    faults = []
    for _ in range(44):
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
        optimizer.zero_grad()
        step(x).backward()
        optimizer.step()
    return min(faults[i + 10] - faults[i] for i in range(3, 34, 10))

print({(name, kind): pages(name, kind == "captured")
       for name in MODELS for kind in ("eager", "captured")})
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a setting of glibc")
def test_steps_take_no_new_memory_from_the_system() -> None:
    """New pages of the quietest ten steps after the third. Arrays that go back to the system are
    seen; a small object that each step leaves behind fills a page too slowly."""
    found = ast.literal_eval(" ".join(_run(STEPS)))
    assert len(found) == 6
    assert {case: pages for case, pages in found.items() if pages > 1} == {}
