"""Compiled bodies on disk are used without what numba needs to compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="numba is not installed")

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
