"""Compiled steps where the Trainer's folders lie inside of the package, as an install has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import minitorch as mt
from minitorch import nn
from minitorch.trainer import TaskModule, Trainer

assert "installed" in mt.__file__


class Task(TaskModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

    def training_step(self, batch, batch_idx):
        loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return mt.optim.SGD(self.parameters(), lr=0.1)


trainer = Trainer(max_epochs=3, compile=True, enable_progress_bar=False)
result = trainer.fit(Task(), (mt.randn(8, 3), mt.randn(8, 1)), batch_size=4)
assert not result.warnings, result.warnings
"""


def test_the_trainer_is_not_taken_for_an_operation(tmp_path: Path) -> None:
    package = tmp_path / "installed" / "minitorch"
    package.mkdir(parents=True)
    for entry in [*(ROOT / "minitorch").iterdir(), *map(ROOT.joinpath, FOLDERS)]:
        (package / entry.name).symlink_to(entry)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    run = subprocess.run(
        [sys.executable, program], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


FOLDERS = ("trainer", "callbacks", "loggers")
