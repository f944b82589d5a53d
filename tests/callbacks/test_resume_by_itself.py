"""ckpt_path="auto", a folder, "last", BackupAndRestore, OnExceptionCheckpoint."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Fails, Linear, Scripted, fit, quiet

import minitorch as mt
from minitorch.callbacks import BackupAndRestore, Callback, ModelCheckpoint, OnExceptionCheckpoint
from minitorch.errors import ArgumentError, CheckpointError, TrainerError
from minitorch.io import load_tree
from minitorch.loggers import CSVLogger


def age(*files: Path) -> None:
    """Gives files times of writing in this order, oldest first."""
    for number, file in enumerate(files):
        os.utime(file, ns=(0, 10**18 + number * 10**9))


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)


class Raise(Exception):
    """Ends a run in the tests."""


def cut(epoch: int) -> Fails:
    """Fails at the start of an epoch, counted from 1."""
    return Fails("on_train_epoch_start", epoch, Raise())


def whole() -> dict[str, Any]:
    """The weights after four epochs without a break."""
    mt.manual_seed(3)
    task = Scripted([4, 3, 2, 1])
    fit(task, max_epochs=4)
    return {name: value.numpy().copy() for name, value in task.state_dict().items()}


def same(task: Any, expected: dict[str, Any]) -> bool:
    state = task.state_dict()
    return all(np.array_equal(state[name].numpy(), value) for name, value in expected.items())


def every_epoch(folder: Path) -> ModelCheckpoint:
    return ModelCheckpoint(folder, "{epoch}", save_top_k=-1, save_last=False)


def run(task: Any, *callbacks: Any, **options: Any) -> Any:
    return fit(task, *callbacks, max_epochs=4, **options)


def test_auto_starts_afresh_and_goes_on(tmp_path: Path, capsys: Any) -> None:
    expected = whole()
    mt.manual_seed(3)
    with pytest.raises(Raise):
        run(Scripted([4, 3, 2, 1]), every_epoch(tmp_path), cut(3), ckpt="auto")
    assert "starts afresh" in capsys.readouterr().out
    task = Scripted([4, 3, 2, 1])
    assert run(task, every_epoch(tmp_path), ckpt="auto").global_step == 16
    out = capsys.readouterr().out
    assert f"resuming from {tmp_path / 'epoch=1.ckpt'} (epoch 1, update 8)" in out
    assert same(task, expected)


def test_a_finished_run_says_so_in_place_of_a_bar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(Scripted([4, 3, 2, 1]), every_epoch(tmp_path))
    capsys.readouterr()
    run(Scripted([]), every_epoch(tmp_path), ckpt="auto", enable_progress_bar=True)
    out, err = capsys.readouterr()
    assert out.endswith("Trainer: nothing was left to do: max_epochs=4 reached.\n")
    assert "Epoch" not in err


@pytest.mark.parametrize("asked", ["auto", "folder"])
def test_damaged_and_foreign_files_are_skipped_by_name(asked: str, tmp_path: Path) -> None:
    expected = whole()
    mt.manual_seed(3)
    with pytest.raises(Raise):
        run(Scripted([4, 3, 2, 1]), every_epoch(tmp_path), cut(4))
    files = [tmp_path / f"epoch={n}.ckpt" for n in range(3)]
    cut_short, foreign, weights = (tmp_path / f"{n}.ckpt" for n in ("cut", "foreign", "weights"))
    cut_short.write_bytes(files[1].read_bytes()[:-100])
    mt.save({"x": 1}, foreign)
    other = quiet(max_epochs=1)
    other.fit(Linear(), [(mt.ones(2, 2), mt.ones(2, 1))])
    other.save_checkpoint(weights, weights_only=True)
    damage(files[2])
    age(files[0], files[1], files[2], cut_short, foreign, weights)
    task = Scripted([4, 3, 2, 1])
    with pytest.warns(UserWarning, match="Got 3 that are not, resuming from .*epoch=1") as caught:
        run(task, every_epoch(tmp_path), ckpt="auto" if asked == "auto" else tmp_path)
    text = str(caught[0].message)
    assert all(name in text for name in ("epoch=2.ckpt", "cut.ckpt", "foreign.ckpt"))
    assert "weights.ckpt" not in text
    assert same(task, expected)


def test_auto_with_nothing_but_damaged_files_says_so_and_starts_afresh(tmp_path: Path) -> None:
    (tmp_path / "epoch=0.ckpt").write_bytes(b"half")
    with pytest.warns(UserWarning, match=r"Got 1 that are not, starting afresh: .*epoch=0"):
        assert run(Scripted([1]), every_epoch(tmp_path), ckpt="auto").epochs == 4
    with pytest.raises(TrainerError, match=r'"auto" looks where a callback keeps.*BackupAndRest'):
        run(Scripted([1]), ckpt="auto")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CheckpointError, match=r"folder as ckpt_path must hold .*Pass another"):
        run(Scripted([1]), ckpt=empty)


def test_auto_after_the_end_has_nothing_to_do(tmp_path: Path) -> None:
    run(Scripted([1]), every_epoch(tmp_path))
    task = Scripted([1])
    result = run(task, every_epoch(tmp_path), ckpt="auto")
    assert (result.status, result.global_step) == ("completed", 16)
    path = tmp_path / "epoch=3.ckpt"
    assert same(task, {n: v.numpy() for n, v in load_tree(path)["state_dict"].items()})


def test_auto_looks_into_earlier_versions_of_the_logger(tmp_path: Path, capsys: Any) -> None:
    def options() -> dict[str, Any]:
        return {"logger": CSVLogger(tmp_path), "ckpt": "auto"}

    with pytest.raises(Raise):
        run(Scripted([1]), ModelCheckpoint(save_last=True), cut(3), **options())
    assert run(Scripted([1]), ModelCheckpoint(save_last=True), **options()).epochs == 4
    assert "version_0" in capsys.readouterr().out.splitlines()[-1]


def test_last_looks_into_earlier_versions_of_the_logger(tmp_path: Path) -> None:
    def keep() -> ModelCheckpoint:
        return ModelCheckpoint(save_last=True)

    fit(Scripted([1]), keep(), max_epochs=1, logger=CSVLogger(tmp_path))
    result = run(Scripted([1]), keep(), logger=CSVLogger(tmp_path), ckpt="last")
    assert (result.epochs, result.global_step) == (4, 16)
    assert "version_1" in str(result.last)


@pytest.mark.parametrize("update", [2, 5])
def test_an_end_before_the_first_validation_is_no_lack_of_values(
    update: int, tmp_path: Path
) -> None:
    class Interrupt(Callback):
        def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
            if trainer.global_step == update:
                signal.raise_signal(signal.SIGINT)

    keep = ModelCheckpoint(tmp_path, monitor="val/score", mode="min")
    result = run(Scripted([1]), keep, Interrupt(), num_sanity_val_steps=0)
    assert (result.status, result.global_step) == ("interrupted", update)


def test_last_is_the_newest_of_several_runs(tmp_path: Path) -> None:
    def keep() -> ModelCheckpoint:
        return ModelCheckpoint(tmp_path, "{epoch}", save_last=True)

    for epochs in (1, 2):
        fit(Scripted([1]), keep(), max_epochs=epochs)
    age(tmp_path / "last.ckpt", tmp_path / "last-v1.ckpt")
    trainer = quiet(keep(), max_epochs=3)
    trainer.fit(Scripted([1]), [(mt.ones(2, 2), mt.ones(2, 1))] * 4, ckpt_path="last")
    assert trainer.global_step == 12
    with pytest.raises(TrainerError, match=r'ckpt_path="last": .*There is none in'):
        run(Scripted([1]), ModelCheckpoint(tmp_path / "none"), ckpt="last")


@pytest.mark.parametrize("freq", ["epoch", 3])
@pytest.mark.parametrize("double", [False, True])
def test_same_script_again_goes_on_where_it_was(freq: Any, double: bool, tmp_path: Path) -> None:
    expected = whole()

    def backup() -> BackupAndRestore:
        return BackupAndRestore(tmp_path / "b", freq, double_checkpoint=double)

    mt.manual_seed(3)
    with pytest.raises(Raise):
        run(Scripted([4, 3, 2, 1]), backup(), cut(3))
    files = ["backup-previous.ckpt", "backup.ckpt"][not double :]
    assert sorted(os.listdir(tmp_path / "b")) == files
    saved = {"epoch": 8, 3: 6}[freq]
    assert load_tree(tmp_path / "b" / "backup.ckpt")["global_step"] == saved
    task = Scripted([4, 3, 2, 1])
    assert run(task, backup()).status == "completed"
    assert same(task, expected)
    assert os.listdir(tmp_path / "b") == []


def test_damaged_backup_gives_way_to_the_one_before(tmp_path: Path) -> None:
    expected = whole()
    mt.manual_seed(3)
    with pytest.raises(Raise):
        run(Scripted([4, 3, 2, 1]), BackupAndRestore(tmp_path, double_checkpoint=True), cut(4))
    age(tmp_path / "backup-previous.ckpt", tmp_path / "backup.ckpt")
    damage(tmp_path / "backup.ckpt")
    task = Scripted([4, 3, 2, 1])
    with pytest.warns(UserWarning, match=r"resuming from .*backup-previous"):
        run(task, BackupAndRestore(tmp_path, double_checkpoint=True, delete_checkpoint=False))
    assert same(task, expected)
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_its_backup(number: int, tmp_path: Path) -> None:
    class Signals(Callback):
        def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
            if trainer.global_step == 6:
                os.kill(os.getpid(), number)

    expected = whole()
    mt.manual_seed(3)
    first = run(Scripted([4, 3, 2, 1]), BackupAndRestore(tmp_path), Signals())
    assert first.status == "interrupted"
    assert load_tree(tmp_path / "backup.ckpt")["global_step"] == 6
    task = Scripted([4, 3, 2, 1])
    run(task, BackupAndRestore(tmp_path))
    assert same(task, expected)


def test_ckpt_path_takes_precedence_over_a_backup(tmp_path: Path) -> None:
    with pytest.raises(Raise):
        run(Scripted([1]), BackupAndRestore(tmp_path / "b"), every_epoch(tmp_path), cut(4))
    seen: list[int] = []

    class Looks(Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            seen.append(trainer.global_step)

    path = tmp_path / "epoch=0.ckpt"
    backup = BackupAndRestore(tmp_path / "b")
    run(Scripted([1]), backup, every_epoch(tmp_path), Looks(), ckpt=path)
    assert seen == [4]


@pytest.mark.parametrize("freq", [0, "step", 1.5, True])
def test_wrong_frequency(freq: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r'BackupAndRestore: save_freq must be "epoch" or a'):
        run(Scripted([1]), BackupAndRestore(tmp_path, freq))


def test_on_exception_checkpoint_goes_on_exactly(tmp_path: Path) -> None:
    expected = whole()
    mt.manual_seed(3)
    with pytest.raises(Raise) as caught:
        run(
            Scripted([4, 3, 2, 1]),
            OnExceptionCheckpoint(tmp_path, "rescued"),
            Fails("on_train_batch_start", 7, Raise()),
        )
    path = tmp_path / "rescued.ckpt"
    assert caught.value.__notes__ == [f"OnExceptionCheckpoint saved {path}"]
    assert load_tree(path)["global_step"] == 6
    task = Scripted([4, 3, 2, 1])
    run(task, OnExceptionCheckpoint(tmp_path), ckpt="auto")
    assert same(task, expected)
    assert os.listdir(tmp_path) == ["rescued.ckpt"]


def test_on_exception_checkpoint_saves_nothing_outside_of_training(tmp_path: Path) -> None:
    keep = OnExceptionCheckpoint(tmp_path)
    with pytest.raises(Raise):
        run(Scripted([1]), keep, Fails("on_fit_start", 1, Raise()))
    with pytest.raises(Raise):
        run(Scripted([1]), keep, Fails("on_fit_end", 1, Raise()))
    with pytest.raises(ArgumentError, match="OnExceptionCheckpoint: filename must be a name"):
        run(Scripted([1]), OnExceptionCheckpoint(tmp_path, ""))
    assert os.listdir(tmp_path) == []
