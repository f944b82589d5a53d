"""Runs that are killed at random moments, also while saving and with a full disk, lose nothing.

`MINITORCH_KILLS=200 pytest tests/trainer/test_kills.py` runs the long form.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = int(os.environ.get("MINITORCH_KILLS", "6"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_killed_runs_resume_exactly_and_lose_no_checkpoint(tmp_path: Path) -> None:
    script = Path(__file__).with_name("kill_runs.py")
    command = [sys.executable, str(script), str(tmp_path), str(KILLS), "20"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    print(report)
    assert report["problems"] == [], run.stderr
    assert report["kills"] >= KILLS
    assert report["writing"] > 0
    assert report["full"] > 0
