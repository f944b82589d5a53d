"""docs/coverage.md is what its script writes, and the script needs no torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import importlib.abc, runpy, sys

class NoTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is not here")

sys.meta_path.insert(0, NoTorch())
sys.argv = ["coverage.py", "--check"]
runpy.run_path("scripts/coverage.py", run_name="__main__")
"""


def test_the_page_is_up_to_date_without_torch() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
