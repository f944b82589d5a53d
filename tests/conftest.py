"""Fixtures that every folder of tests shares."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

# Last on the path: the folders here are called `random` and `io` like modules of Python.
sys.path.append(str(Path(__file__).parent))

# The cores are busy with tests.
os.environ.setdefault("MINITORCH_COMPILE_AHEAD", "off")

_BACKEND = "minitorch.backend.cupy_backend"


@pytest.fixture(autouse=True)
def _seeded() -> None:
    import minitorch

    minitorch.manual_seed(0)


@pytest.fixture
def pretend_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The pretend GPU in CuPy's place, with its counters at zero and device 0 current."""
    gpu = importlib.import_module("pretend_gpu")
    from minitorch import backend

    monkeypatch.setitem(sys.modules, "cupy", gpu)
    monkeypatch.delitem(sys.modules, _BACKEND, raising=False)
    record = importlib.import_module(_BACKEND).make()
    backend.register("cuda", record)
    gpu.cuda.Device(0).use()
    gpu.counters.reset()
    yield gpu
    gpu.cuda.Device(0).use()
    backend.unregister("cuda")
    del sys.modules[_BACKEND], backend.cupy_backend
