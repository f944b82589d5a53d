"""Two runs that write checkpoints into one folder at the same time lose no file."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from scripted_tasks import Scripted, fit

import minitorch as mt
from minitorch.callbacks import Callback, ModelCheckpoint, reservations
from minitorch.callbacks.checkpoint_files import free_path, release
from minitorch.errors import CheckpointError
from minitorch.io import load_tree


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mark(folder: Path, name: str, pid: int, host: str | None = None) -> Path:
    """What another process would have left while it writes a file."""
    path = folder / f".{name}.taken"
    path.write_text(f"{platform.node() if host is None else host} {pid}")
    return path


def ended() -> int:
    """The number of a process that is over."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_name_that_another_process_has_taken(tmp_path: Path) -> None:
    stem = str(tmp_path / "x")
    mark(tmp_path, "x.ckpt", os.getppid())
    mark(tmp_path, "x-v1.ckpt", 1, host="elsewhere")
    path = free_path(stem, taken=())
    assert path == f"{stem}-v2.ckpt"
    assert ".x-v2.ckpt.taken" in names(tmp_path)
    release(path)
    assert names(tmp_path) == [".x-v1.ckpt.taken", ".x.ckpt.taken"]
    release(f"{stem}.ckpt")  # not ours
    assert names(tmp_path) == [".x-v1.ckpt.taken", ".x.ckpt.taken"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    stem, gone = str(tmp_path / "x"), ended()
    mark(tmp_path, "x.ckpt", gone)
    mark(tmp_path, "y.ckpt", gone)
    there = mark(tmp_path, "z.ckpt", os.getppid())
    path = free_path(stem, taken=())
    assert path == f"{stem}.ckpt"
    release(path)
    reservations.clear(str(tmp_path))
    assert names(tmp_path) == [there.name]
    reservations.clear(str(tmp_path / "none"))


def test_a_file_that_comes_between_look_and_reservation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = reservations.reserve

    def late(path: str) -> bool:
        if path.endswith("x.ckpt"):
            Path(path).write_text("theirs")
        return reserve(path)

    monkeypatch.setattr(reservations, "reserve", late)
    path = free_path(str(tmp_path / "x"), taken=())
    release(path)
    assert path.endswith("x-v1.ckpt")
    assert names(tmp_path) == ["x.ckpt"]


PROGRAM = """
import sys
from scripted_tasks import Linear, fit
from minitorch.callbacks import Callback, ModelCheckpoint
class Meet(Callback):
    def on_train_epoch_start(self, trainer, module):
        print("ready", flush=True)
        sys.stdin.readline()
keep = ModelCheckpoint(sys.argv[1], "{epoch}", save_last=True, save_top_k=-1)
fit(Linear(), Meet(), keep, max_epochs=2)
print(*keep.best_k_models, keep.last_model_path, flush=True)
"""


def test_two_processes(tmp_path: Path) -> None:
    folder, here = tmp_path / "runs", str(Path(__file__).parent)
    env = {**os.environ, "PYTHONPATH": here, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs = [subprocess.Popen(command, env=env, **pipes) for _ in range(2)]
    lasts = []
    for _ in range(2):
        for run in runs:
            while "ready" not in run.stdout.readline():  # type: ignore[union-attr]
                assert run.poll() is None
        for run in runs:
            run.stdin.write("go\n")  # type: ignore[union-attr]
            run.stdin.flush()  # type: ignore[union-attr]
    for run in runs:
        lasts.append(run.communicate(timeout=60)[0].split()[-1])
        assert run.returncode == 0
    kinds = ("epoch=0", "epoch=1", "last")
    assert names(folder) == sorted(f"{kind}{v}.ckpt" for kind in kinds for v in ("", "-v1"))
    assert len(set(lasts)) == 2
    for name in names(folder):
        load_tree(folder / name)


class Other(Callback):
    """Another run, which was resumed from the same file, replaces a file in the second epoch."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        if trainer.current_epoch == 1:
            for thread in threading.enumerate():
                if thread.name.startswith("ModelCheckpoint"):  # it writes the file of epoch 0
                    thread.join()
            mt.save({"theirs": 1}, self.path)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("name", ["last.ckpt", "best.ckpt"])
def test_a_file_that_another_run_replaced_stays(name: str, later: bool, tmp_path: Path) -> None:
    keep = ModelCheckpoint(
        tmp_path, "best", monitor="val/score", mode="min", save_last=True, save_async=later
    )
    with pytest.warns(UserWarning, match=f"{name} must be written by one run only.*next free"):
        fit(Scripted([3, 2, 1]), keep, Other(tmp_path / name), max_epochs=3)
    assert set(mt.load(tmp_path / name)) == {"theirs"}
    assert names(tmp_path) == sorted(["best.ckpt", "last.ckpt", name.replace(".", "-v1.")])
    new = tmp_path / name.replace(".", "-v1.")
    assert load_tree(new)["global_step"] == 12
    assert str(new) in (keep.last_model_path, keep.best_model_path)


def test_a_run_that_is_resumed_goes_on_with_its_files(tmp_path: Path) -> None:
    def keeper() -> ModelCheckpoint:
        return ModelCheckpoint(tmp_path, "best", monitor="val/score", mode="min", save_last=True)

    fit(Scripted([3, 2]), keeper(), max_epochs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(Scripted([3, 2, 1]), keeper(), ckpt=tmp_path / "last.ckpt", max_epochs=3)
    assert names(tmp_path) == ["best.ckpt", "last.ckpt"]


@pytest.mark.filterwarnings("ignore:ModelCheckpoint")
def test_a_name_of_a_file_that_failed_is_free_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    keep = ModelCheckpoint(tmp_path, "{epoch}", save_last=True)
    with monkeypatch.context() as broken:
        broken.setattr("minitorch.io.save_tree", full)
        with pytest.raises(CheckpointError, match="final state"):
            fit(Scripted([1]), keep, max_epochs=1)
    assert keep.failures
    assert names(tmp_path) == []
    assert free_path(str(tmp_path / "last"), taken=()) == str(tmp_path / "last.ckpt")
    release(str(tmp_path / "last.ckpt"))
