"""Processes of their own: killed while saving, with Python's ordinary warnings, with a log file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from scripted_tasks import Scripted, fit

from minitorch.callbacks import ModelCheckpoint
from minitorch.io import load_tree, verify

SCORES = [5.0, 4.0, 6.0, 3.0, 2.0, 1.0]

TRAIN = """
import math, os, signal, sys
sys.path.append({tests!r})
from scripted_tasks import Scripted, fit
from minitorch.callbacks import ModelCheckpoint

replaces, real = [0], os.replace

def replace(source, target):
    replaces[0] += 1
    if replaces[0] == {number} and {before}:
        os.kill(os.getpid(), signal.SIGKILL)
    real(source, target)
    if replaces[0] == {number}:
        os.kill(os.getpid(), signal.SIGKILL)

os.replace = replace
keep = ModelCheckpoint({folder!r}, "{{epoch}}", monitor="val/score", mode="min", save_last=True)
fit(Scripted({scores!r}), keep, max_epochs={epochs})
"""


def train(folder: Path, number: int, *, before: bool, scores: str = str(SCORES)) -> str:
    """Trains in a process that dies at its n-th renaming of a file.

    Args:
        folder: Where checkpoints go.
        number: Counted from 1; 0 for none.
        before: Dies before the renaming rather than after it.
        scores: The script, as Python text.

    Returns:
        What the process wrote to stderr.
    """
    code = TRAIN.format(
        tests=str(Path(__file__).parent),
        number=number,
        before=before,
        folder=str(folder),
        scores=SCORES,
        epochs=len(SCORES),
    ).replace(repr(SCORES), scores)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == (-9 if number else 0), done.stderr
    return done.stderr


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("number", [1, 3, 4])
def test_killed_while_saving(number: int, before: bool, tmp_path: Path) -> None:
    train(tmp_path, number, before=before)
    files = sorted(tmp_path.glob("*.ckpt"))
    assert all(verify(path) for path in files)
    last = tmp_path / "last.ckpt"
    if number > 2:
        assert load_tree(last)["epoch"] == (number == 4 and not before)
    keep = ModelCheckpoint(tmp_path, "{epoch}", monitor="val/score", mode="min", save_last=True)
    task = Scripted(SCORES)
    result = fit(task, keep, ckpt=last if last.exists() else None, max_epochs=len(SCORES))
    assert result.best is not None
    assert result.best.score == min(SCORES)
    assert task.validations == len(SCORES)


def test_warnings_reach_the_user(tmp_path: Path) -> None:
    error = train(tmp_path, 0, before=False, scores="[math.nan, *[1.0] * 5]")
    assert error.count("UserWarning: ModelCheckpoint: monitor='val/score' is nan") == 1
