"""ModelCheckpoint after a resume: the ranking goes on, wherever the files are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from scripted_tasks import Fails, Linear, Scripted, fit

from minitorch.callbacks import ModelCheckpoint
from minitorch.io import load_tree


def names(folder: Path) -> list[str]:
    """Names of the checkpoints in a folder, without their ending."""
    return sorted(path.name.removesuffix(".ckpt") for path in folder.iterdir())


def test_resumed_run_goes_on_with_the_ranking(tmp_path: Path) -> None:
    scores = [5, 3, 4, 2, 6, 1]
    whole = ModelCheckpoint(tmp_path / "whole", "{epoch}", monitor="val/score", mode="min")
    whole.save_top_k = 2
    fit(Scripted(scores), whole, max_epochs=6)
    for cut in range(1, 6):
        folder = tmp_path / str(cut)

        def make(folder: Path = folder) -> ModelCheckpoint:
            return ModelCheckpoint(
                folder, "{epoch}", monitor="val/score", mode="min", save_top_k=2, save_last=True
            )

        with pytest.raises(ZeroDivisionError):
            fit(
                Scripted(scores),
                make(),
                Fails("on_train_epoch_start", cut + 1, ZeroDivisionError()),
                max_epochs=6,
            )
        keep = make()
        fit(Scripted(scores), keep, ckpt=folder / "last.ckpt", max_epochs=6)
        assert {Path(p).name: s for p, s in keep.best_k_models.items()} == {
            Path(p).name: s for p, s in whole.best_k_models.items()
        }
        assert names(folder) == ["epoch=3", "epoch=5", "last"]
        assert load_tree(folder / "last.ckpt")["global_step"] == 24


def test_resumed_run_in_a_new_folder_ranks_the_old_files_and_leaves_them(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"

    def make(folder: Path) -> ModelCheckpoint:
        return ModelCheckpoint(folder, "{epoch}", monitor="val/score", mode="min", save_last=True)

    fit(Scripted([3]), make(old), max_epochs=1)
    keep = make(new)
    fit(Scripted([3, 4]), keep, ckpt=old / "last.ckpt", max_epochs=2)
    assert keep.best_model_path == str(old / "epoch=0.ckpt")
    assert names(new) == ["last"]
    keep = make(new)
    fit(Scripted([3, 1]), keep, ckpt=old / "last.ckpt", max_epochs=2)
    assert names(old) == ["epoch=0", "last"]
    assert keep.best_model_path == str(new / "epoch=1.ckpt")


def test_folder_that_was_moved_is_found(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"

    def make(folder: Path) -> ModelCheckpoint:
        return ModelCheckpoint(folder, "{epoch}", monitor="val/score", mode="min", save_last=True)

    fit(Scripted([3]), make(old), max_epochs=1)
    old.rename(new)
    keep = make(new)
    fit(Scripted([3, 2]), keep, ckpt=new / "last.ckpt", max_epochs=2)
    assert names(new) == ["epoch=1", "last"]


def test_missing_files_leave_the_ranking(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, "{epoch}", monitor="val/score", mode="min", save_last=True)
    fit(Scripted([3]), keep, max_epochs=1)
    os.remove(tmp_path / "epoch=0.ckpt")
    with pytest.warns(
        UserWarning, match=r"1 of 1 files that the checkpoint ranks are no longer in"
    ):
        fit(Scripted([3, 4]), keep, ckpt=tmp_path / "last.ckpt", max_epochs=2)
    assert keep.best_model_score == 4


def test_smaller_k_after_a_resume_keeps_the_best(tmp_path: Path) -> None:
    keep = ModelCheckpoint(
        tmp_path, "{epoch}", monitor="val/score", mode="min", save_top_k=3, save_last=True
    )
    fit(Scripted([3, 1, 2]), keep, max_epochs=3)
    keep.save_top_k = 1
    fit(Scripted([3, 1, 2, 4]), keep, ckpt=tmp_path / "last.ckpt", max_epochs=4)
    assert keep.best_k_models == {str(tmp_path / "epoch=1.ckpt"): 1}


def test_several_have_keys_of_their_own(tmp_path: Path) -> None:
    several = [
        ModelCheckpoint(tmp_path, monitor="val/loss", mode="min"),
        ModelCheckpoint(tmp_path, monitor="val/loss", mode="max"),
        ModelCheckpoint(tmp_path),
        ModelCheckpoint(tmp_path, every_n_train_steps=2),
        ModelCheckpoint(tmp_path / "twin", every_n_train_steps=2),
    ]
    result = fit(Linear(), *several, max_epochs=1)
    keys = [keep.state_key for keep in several]
    assert keys[0] == "ModelCheckpoint(monitor='val/loss', mode='min')"
    assert keys[4] == keys[3] + "#2"
    assert len(set(keys)) == 5
    assert set(keys) <= set(load_tree(result.last)["callbacks"])


# Wrong use.


def test_weights_only(tmp_path: Path) -> None:
    fit(Linear(), ModelCheckpoint(tmp_path, save_weights_only=True, save_last=True), max_epochs=1)
    for name in names(tmp_path):
        assert "loops" not in load_tree(tmp_path / f"{name}.ckpt")


def test_object_starts_afresh_in_another_fit(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, "{epoch}", monitor="val/score", mode="min", save_last=False)
    fit(Scripted([1]), keep, max_epochs=1)
    fit(Scripted([2]), keep, max_epochs=1)
    assert keep.best_k_models == {str(tmp_path / "epoch=0-v1.ckpt"): 2}


def test_state_is_plain(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min", save_last=True)
    fit(Linear(), keep, max_epochs=2)
    assert json.loads(json.dumps(keep.state_dict())) == keep.state_dict()
