"""Makes the datasets of these tests importable, also in spawned workers."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    from loader_samples import loader_threads

    yield
    assert not loader_threads()
