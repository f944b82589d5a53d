"""Files that are written on a thread, and disks that refuse them."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Fails, Scripted, fit

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import BackupAndRestore, Callback, ModelCheckpoint
from minitorch.callbacks.core import nested
from minitorch.errors import ArgumentError, CheckpointError
from minitorch.io import load_tree
from minitorch.loggers import CSVLogger


def names(folder: Path) -> list[str]:
    """What is in a folder."""
    return sorted(path.name for path in folder.iterdir())


def keeper(folder: Path, **options: Any) -> ModelCheckpoint:
    options = {"monitor": "val/score", "mode": "min", "save_async": True, **options}
    return ModelCheckpoint(folder, "{epoch}", **options)


class Disk:
    """Stands for `save_tree`: refuses some calls, and lets others wait for a gate.

    Args:
        refused: Numbers of the calls that fail, from 0.
        error: What they raise.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, refused: Any = (), error: Any = None
    ) -> None:
        self.write, self.refused, self.calls = mt.io.save_tree, refused, 0
        self.error = error or full()
        self.threads: list[bool] = []
        self.begun, self.gate = threading.Event(), threading.Event()
        self.gate.set()
        monkeypatch.setattr(mt.io, "save_tree", self)

    def __call__(self, path: str, tree: Any) -> None:
        self.calls += 1
        self.threads.append(threading.current_thread() is threading.main_thread())
        self.begun.set()
        assert self.gate.wait(60)
        if self.calls - 1 in self.refused:
            raise self.error
        self.write(path, tree)


def full() -> CheckpointError:
    error = CheckpointError("save: no space.")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    return error


@pytest.mark.parametrize("save_last", [None, True, "link", False])
def test_files_are_those_of_a_writer_that_waits(save_last: Any, tmp_path: Path) -> None:
    scores = [5, 3, 4, 2, 6]
    for name, later in (("now", False), ("later", True)):
        mt.manual_seed(3)
        keep = keeper(tmp_path / name, save_async=later, save_top_k=2, save_last=save_last)
        fit(Scripted(scores), keep, max_epochs=5)
    now, later = tmp_path / "now", tmp_path / "later"
    assert names(now) == names(later)
    for name in names(now):
        ours, theirs = (load_tree(folder / name) for folder in (later, now))
        assert ours["global_step"] == theirs["global_step"]
        for key, value in theirs["state_dict"].items():
            np.testing.assert_array_equal(ours["state_dict"][key], value)


def test_training_goes_on_while_a_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    disk.gate.clear()

    class Opens(Callback):
        """Opens the gate two updates after the first save, which is still being written."""

        def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
            if trainer.global_step == 6:
                assert disk.begun.wait(60)
                assert disk.threads == [False]
                assert names(tmp_path) == [".epoch=0.ckpt.taken"]
                disk.gate.set()

    keep = keeper(tmp_path, save_top_k=-1, save_last=False)
    fit(Scripted([1, 2, 3]), keep, Opens(), max_epochs=3)
    assert names(tmp_path) == ["epoch=0.ckpt", "epoch=1.ckpt", "epoch=2.ckpt"]
    first = load_tree(tmp_path / "epoch=0.ckpt")  # the state of then, not of when it was written
    assert first["global_step"] == first["loops"]["position"]["global_step"] == 4


@pytest.mark.parametrize("later", [False, True])
def test_loggers_get_the_metrics_of_the_moment_of_the_save(later: bool, tmp_path: Path) -> None:
    class Notes(CSVLogger):
        seen: list[float] = []

        def after_save_checkpoint(self, path: str, metrics: Any) -> None:
            self.seen.append(metrics["val/score"])

    keep = keeper(tmp_path, save_async=later, save_top_k=-1)
    fit(Scripted([3, 2, 1]), keep, max_epochs=3, logger=(notes := Notes(tmp_path / "logs")))
    assert notes.seen == [3, 2, 1]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("save_last", [None, True])
def test_full_disk_is_a_warning_and_older_files_stay(
    save_last: Any, later: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = keeper(tmp_path, save_async=later, save_last=save_last)
    Disk(monkeypatch, refused=[1])
    with pytest.warns(UserWarning, match=r"ModelCheckpoint: save: no space. Training goes on"):
        result = fit(Scripted([3, 2, 4]), keep, max_epochs=3)
    assert result.status == "completed"
    assert any("no space" in text for text in result.warnings)
    assert {Path(p).name: s for p, s in keep.best_k_models.items()} == {"epoch=0.ckpt": 3}
    assert names(tmp_path) == ["epoch=0.ckpt", "last.ckpt"]
    assert load_tree(tmp_path / "last.ckpt")["global_step"] == 12
    assert keep.last_model_path == str(tmp_path / "last.ckpt")


@pytest.mark.parametrize("later", [False, True])
def test_run_whose_final_state_is_in_no_file_ends_with_an_error(
    later: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, refused=range(1, 9))
    task = Scripted([3, 2])
    with (
        pytest.warns(UserWarning, match="no space"),
        pytest.raises(CheckpointError, match=r"final state could not.*trainer.save_checkpoint"),
    ):
        fit(task, keeper(tmp_path, save_async=later), max_epochs=2)
    monkeypatch.undo()
    assert names(tmp_path) == ["epoch=0.ckpt"]
    task.trainer.save_checkpoint(tmp_path / "rescued.ckpt")
    assert load_tree(tmp_path / "rescued.ckpt")["global_step"] == 8


@pytest.mark.parametrize("at", [0, 1])
def test_other_errors_of_the_thread_come_at_the_next_save_or_the_end(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, refused=[at], error=CheckpointError("a value has no form"))
    keep = keeper(tmp_path, save_last=False)
    with pytest.raises(CheckpointError, match="a value has no form"):
        fit(Scripted([3, 2]), keep, max_epochs=2)
    assert names(tmp_path) == [[], ["epoch=0.ckpt"]][at]
    assert [Path(p).name for p in keep.best_k_models] == names(tmp_path)


def test_exception_of_the_run_waits_for_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    keep = keeper(tmp_path, save_last=True, save_on_exception=True)
    with pytest.raises(ZeroDivisionError):
        fit(
            Scripted([3, 2]),
            keep,
            Fails("on_train_epoch_start", 2, ZeroDivisionError()),
            max_epochs=2,
        )
    assert names(tmp_path) == ["epoch=0.ckpt", "exception-epoch=1-step=4.ckpt", "last.ckpt"]
    assert disk.threads == [False, True]


def test_value_that_no_file_holds_is_refused_at_once(tmp_path: Path) -> None:
    class Odd(Scripted):
        def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
            checkpoint["odd"] = object()

    with pytest.raises(CheckpointError, match=r"Got builtins.object at 'odd'"):
        fit(Odd([3, 2]), keeper(tmp_path), max_epochs=2)


@pytest.mark.parametrize("later", [False, True])
def test_backup_survives_a_full_disk(
    later: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Disk(monkeypatch, refused=[1])
    backup = BackupAndRestore(tmp_path, save_async=later, delete_checkpoint=False)
    with pytest.warns(UserWarning, match=r"BackupAndRestore: save: no space. Training goes on"):
        result = fit(Scripted([3, 2]), backup, max_epochs=2)
    assert result.warnings == tuple(backup.failures)
    assert load_tree(backup.path)["global_step"] == 4


def test_scores_as_yaml(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, 'a "b" {epoch}', monitor="val/score", mode="min", save_top_k=2)
    fit(Scripted([3, 1.5, 2]), keep, max_epochs=3)
    yaml = pytest.importorskip("yaml")
    keep.to_yaml()
    keep.to_yaml(tmp_path / "other.yaml")
    for name in ("best_k_models.yaml", "other.yaml"):
        assert yaml.safe_load((tmp_path / name).read_text()) == keep.best_k_models
    empty = ModelCheckpoint(tmp_path)
    empty.to_yaml()
    assert yaml.safe_load((tmp_path / "best_k_models.yaml").read_text()) == {}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="Linux has a folder without room")
def test_folder_that_permissions_do_not_tell_of() -> None:
    with pytest.raises(ArgumentError, match=r"Got /proc/nope, but /proc is not writable \("):
        fit(Scripted([1]), ModelCheckpoint("/proc/nope"), max_epochs=1)


class Momentum(Scripted):
    """Adam, dropout and a buffer: state of every kind on the device."""

    def __init__(self, scores: list[float]) -> None:
        mt.manual_seed(4)
        super().__init__(scores)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x: Any) -> Any:
        return super().forward(nn.functional.dropout(self.norm(x), 0.3, self.training))

    def configure_optimizers(self) -> Any:
        return mt.optim.Adam(self.parameters(), lr=0.01)


@pytest.mark.parametrize("precision", ["32", "16-mixed"])
def test_state_of_a_gpu_is_that_of_the_moment_of_the_save(
    precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pretend_gpu: Any
) -> None:
    """Training changes the arrays on the device while the thread writes what they were."""
    options: dict[str, Any] = {"accelerator": "gpu", "precision": precision}
    now, later = tmp_path / "now", tmp_path / "later"
    whole = Momentum([1, 2, 3])
    fit(whole, keeper(now, save_async=False, save_top_k=-1), max_epochs=3, **options)
    disk, uses = Disk(monkeypatch), list[bool]()
    disk.gate.clear()

    class Opens(Callback):
        """Opens the gate of the first file two batches later."""

        def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
            if trainer.position.batches == 6:
                assert disk.begun.wait(60)
                uses.append((later / "epoch=0.ckpt").exists())
                disk.gate.set()

    task = Momentum([1, 2, 3])
    fit(task, keeper(later, save_top_k=-1), Opens(), max_epochs=3, **options)
    assert uses == [False]
    assert disk.threads == [False] * 3
    assert names(now) == names(later)
    for name in names(now):
        ours, theirs = (load_tree(folder / name) for folder in (later, now))
        for part in ("state_dict", "optimizer_states", "random", "loops"):
            np.testing.assert_equal(_plain(ours[part]), _plain(theirs[part]), err_msg=part)
    again = Momentum([1, 2, 3])
    fit(again, keeper(later), ckpt=later / "epoch=0.ckpt", max_epochs=3, **options)
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name].cpu(), value.cpu(), err_msg=name)


def _plain(tree: Any) -> Any:
    """The tree with NumPy's arrays for tensors."""
    return nested.map_leaves(tree, lambda x: x.cpu().numpy() if isinstance(x, mt.Tensor) else x)
