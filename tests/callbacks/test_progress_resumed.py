"""Lines of progress of a run that goes on from a file."""

from pathlib import Path
from typing import Any

import pytest
from scripted_tasks import Linear, loader, quiet

from minitorch.callbacks import ModelCheckpoint


class Task(Linear):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("val/acc", 0.75)


def test_an_epoch_whose_batches_an_earlier_run_did_has_no_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = None
    for epochs in (1, 2):
        keep = ModelCheckpoint(tmp_path, monitor="val/acc", mode="max")  # saves at the validation
        trainer = quiet(keep, enable_progress_bar=True, max_epochs=epochs)
        path = trainer.fit(Task(), loader(), loader(2), ckpt_path=path).best
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith(f"Epoch {epochs - 1}/{epochs - 1}: 4 batches, ")
