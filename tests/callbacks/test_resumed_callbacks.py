"""Callbacks of a resumed run end in the state of those of an uninterrupted one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scripted_tasks import Scripted, Spy, fit

import minitorch as mt
from minitorch import optim
from minitorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    Order,
)
from minitorch.io import load_tree

SCORES = [5.0, 4.0, 4.5, 3.0, 3.5, 3.2, 3.1, 9.0, 9.0, 9.0]
STEPS = 40


class Task(Scripted):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        self.log("train/loss", loss, on_epoch=True)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = optim.SGD(self.parameters(), lr=0.01, momentum=0.5)
        schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def callbacks(folder: Path) -> list[Any]:
    """Stops in epoch 7; three kinds of checkpoints."""
    monitored: dict[str, Any] = {"monitor": "val/score", "mode": "min"}
    return [
        EarlyStopping("val/score", mode="min", patience=3),
        EarlyStopping("train/loss", mode="max", patience=99, stopping_threshold=1e9),
        ModelCheckpoint(folder / "best", "{epoch}-{step}", save_top_k=3, **monitored),
        ModelCheckpoint(folder / "steps", every_n_train_steps=3, save_top_k=-1, save_last=True),
        ModelCheckpoint(folder / "waits", every_n_train_steps=5, **monitored),
        LearningRateMonitor(),
    ]


def plain(found: list[Any], folder: Path) -> dict[str, Any]:
    """States by key, with the run's folder left out of paths."""
    states = {cb.state_key: cb.state_dict() for cb in found}
    return json.loads(json.dumps(states).replace(str(folder), "FOLDER"))


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "validations": {"val_check_interval": 2},
    "rare": {"check_val_every_n_epoch": 2},
    "windows": {"accumulate_grad_batches": 3},
}


class SaveAndDie(Callback):
    """Saves after a number of batches, when all other callbacks have, and ends the process."""

    order = Order.PERSIST

    def __init__(self, batches: int, path: Path) -> None:
        self.batches = batches
        self.path = path

    def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
        if trainer.position.batches == self.batches:
            trainer.save_checkpoint(self.path)
            raise ZeroDivisionError


@pytest.mark.parametrize("case", OPTIONS)
def test_resumed_equals_uninterrupted(case: str, tmp_path: Path) -> None:
    options = {"max_epochs": len(SCORES), "log_every_n_steps": 1, **OPTIONS[case]}
    mt.manual_seed(3)
    whole = callbacks(tmp_path)
    result = fit(Task(SCORES), *whole, **options)
    expected = plain(whole, tmp_path)
    files = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.ckpt"))
    assert result.status == ("completed" if case == "rare" else "stopped")
    for step in range(1, result.epochs * 4, 3):
        folder, path = tmp_path / f"cut {step}", tmp_path / f"{step}.tree"
        mt.manual_seed(3)
        with pytest.raises(ZeroDivisionError):
            fit(Task(SCORES), *callbacks(folder), SaveAndDie(step, path), **options)
        again = callbacks(folder)
        resumed = fit(Task(SCORES), *again, ckpt=path, **options)
        assert resumed.history == result.history
        assert (resumed.status, resumed.reason) == (result.status, result.reason)
        assert plain(again, folder) == expected, f"after batch {step}"
        assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*.ckpt")) == files


@pytest.mark.filterwarnings("ignore:.*are no longer in")  # the whole run went on and removed some
@pytest.mark.parametrize("kind", ["best", "steps", "waits"])
def test_every_file_that_a_checkpoint_callback_wrote_resumes_exactly(
    kind: str, tmp_path: Path
) -> None:
    options = {"max_epochs": len(SCORES), "log_every_n_steps": 1}
    mt.manual_seed(3)
    task = Task(SCORES)
    result = fit(task, *callbacks(tmp_path / "whole"), **options)
    for path in sorted((tmp_path / "whole" / kind).glob("*.ckpt")):
        if load_tree(path)["global_step"] == result.global_step:
            continue
        again = Task(SCORES)
        resumed = fit(again, *callbacks(tmp_path / path.stem), ckpt=path, **options)
        assert resumed.history == result.history
        for name, value in task.state_dict().items():
            assert (again.state_dict()[name].numpy() == value.numpy()).all()


def test_patience_raised_for_a_resume_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "stopped.ckpt"
    save = Spy("on_validation_end", lambda t: t.should_stop and t.save_checkpoint(path))
    save.order = ModelCheckpoint.order  # type: ignore[misc]
    stop = EarlyStopping("val/score", mode="min", patience=2)
    assert fit(Scripted([1.0]), stop, save, max_epochs=9).epochs == 3
    stop = EarlyStopping("val/score", mode="min", patience=4)
    assert fit(Scripted([1.0]), stop, ckpt=path, max_epochs=9).epochs == 5
    stop = EarlyStopping("val/score", mode="min", patience=2)
    assert fit(Scripted([1.0]), stop, ckpt=path, max_epochs=9).epochs == 3
