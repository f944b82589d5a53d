"""What callbacks cost in each batch: calls are counted and device reads too, nothing is timed."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
from scripted_tasks import Linear, fit, loader, quiet

import minitorch as mt
import minitorch.callbacks
from minitorch.callbacks import (
    Callback,
    EarlyStopping,
    LambdaCallback,
    LearningRateMonitor,
    ModelCheckpoint,
    ModelSummary,
    Order,
    Timer,
    TQDMProgressBar,
)

FOLDER = str(Path(minitorch.callbacks.__file__).parent)
CORE = str(Path(FOLDER) / "core")


def calls_per_batch(*callbacks: Callback) -> list[str]:
    """Names of the functions in callbacks/*.py that the third batch of an epoch calls."""
    names: list[str] = []
    marks: list[int] = []

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call":
            return
        if code.co_name == "_train_batch":
            marks.append(len(names))
        if code.co_filename.startswith(FOLDER) and not code.co_filename.startswith(CORE):
            names.append(code.co_qualname)

    trainer = quiet(*callbacks, max_epochs=1)
    sys.setprofile(profile)
    try:
        trainer.fit(Linear(), loader(5), loader(1))
    finally:
        sys.setprofile(None)
    return names[marks[2] : marks[3]]


def test_callbacks_for_epochs_cost_nothing_in_a_batch(tmp_path: Path) -> None:
    callbacks = [
        EarlyStopping("mean", mode="min", strict=False),
        ModelCheckpoint(tmp_path),
        ModelCheckpoint(tmp_path, monitor="val/loss", mode="min", save_top_k=0),
        LearningRateMonitor(),
        ModelSummary(),
        TQDMProgressBar(),
        Timer(),
        LambdaCallback(on_train_epoch_end=lambda trainer, module: None),
    ]
    with pytest.warns(UserWarning, match="had no value in this run"):
        assert calls_per_batch(*callbacks) == []


@pytest.mark.parametrize(
    ("callback", "calls"),
    [
        (Timer("01:00:00:00"), ["Timer.on_train_batch_end"]),
        (
            LearningRateMonitor("step"),
            ["LearningRateMonitor.on_train_batch_start", "LearningRateMonitor._log"],
        ),
    ],
)
def test_callbacks_for_batches_cost_few_calls(callback: Callback, calls: list[str]) -> None:
    assert calls_per_batch(callback) == calls


def test_regular_checkpoints_cost_few_calls(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, every_n_train_steps=100)
    assert calls_per_batch(keep) == [
        "ModelCheckpoint.on_train_batch_end",
        "ModelCheckpoint._comes_due",
    ]


def everything(folder: Path) -> list[Callback]:
    return [
        EarlyStopping("val/loss", mode="min", patience=99),
        ModelCheckpoint(folder, monitor="val/loss", mode="min", save_top_k=2, save_last=True),
        LearningRateMonitor("step"),
        ModelSummary(),
        TQDMProgressBar(),
        Timer("01:00:00:00"),
    ]


def test_same_run_on_a_device(pretend_gpu: ModuleType, tmp_path: Path) -> None:
    results = []
    for where in ("cpu", "gpu"):
        mt.manual_seed(1)
        task = Linear()
        task.example_input_array = mt.zeros(2, 2)
        callbacks = everything(tmp_path / where)
        results.append(fit(task, *callbacks, accelerator=where, max_epochs=3))
        files = sorted(path.name for path in (tmp_path / where).iterdir())
        assert files[-1] == "last.ckpt"
    cpu, gpu = results
    assert cpu.history.keys() == gpu.history.keys()
    for name, points in cpu.history.items():
        assert [v for _, v in points] == pytest.approx([v for _, v in gpu.history[name]], rel=1e-4)


def test_no_device_is_read_inside_of_an_epoch(pretend_gpu: ModuleType, tmp_path: Path) -> None:
    stack, watched = contextlib.ExitStack(), []

    def begin(trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        if batch_idx == 1:
            watched.append(stack.enter_context(pretend_gpu.counters.watch()))

    def end(trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if batch_idx == 8:
            stack.close()

    look = LambdaCallback(order=Order.PERSIST, on_train_batch_start=begin, on_train_batch_end=end)
    trainer = quiet(*everything(tmp_path), look, accelerator="gpu", max_epochs=2)
    trainer.fit(Linear(), loader(9), loader(1))
    assert [seen.device_to_host.calls for seen in watched] == [0, 0], watched[1].report()
