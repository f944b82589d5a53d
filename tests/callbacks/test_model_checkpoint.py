"""ModelCheckpoint: when it saves, what stays, and that scores belong to the weights."""

from __future__ import annotations

import math
import os
import re
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Fails, Linear, Scripted, Spy, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import Batches, ModelCheckpoint, model_checkpoint
from minitorch.errors import ArgumentError, CheckpointError, TrainerError
from minitorch.io import load_tree
from minitorch.trainer import Trainer

NAN, INF = math.nan, math.inf


def names(folder: Path) -> list[str]:
    """Names of the checkpoints in a folder, without their ending."""
    return sorted(path.name.removesuffix(".ckpt") for path in folder.iterdir())


def saved(folder: Path) -> list[str]:
    """What was saved, in the order of steps."""
    return sorted(names(folder), key=lambda name: int(re.findall(r"\d+", name)[1]))


# Three epochs of four batches. arguments, options of the Trainer → "epoch-step" of each file
RHYTHMS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "epochs": ({}, {}, ["0-4", "1-8", "2-12"]),
    "every second epoch": ({"every_n_epochs": 2}, {}, ["1-8"]),
    "never": ({"every_n_epochs": 0}, {}, []),
    "steps": ({"every_n_train_steps": 3}, {}, ["0-3", "1-6", "2-9", "2-12"]),
    "updates, not batches": (
        {"every_n_train_steps": 2},
        {"accumulate_grad_batches": 2},
        ["0-2", "1-4", "2-6"],
    ),
    "after validations": (
        {"save_on_train_epoch_end": False},
        {"val_check_interval": 2},
        ["0-2", "0-4", "1-6", "1-8", "2-10", "2-12"],
    ),
    "monitor": ({"monitor": "val/loss"}, {}, ["0-4", "1-8", "2-12"]),
    "monitor, several validations": (
        {"monitor": "val/loss"},
        {"val_check_interval": 2},
        ["0-2", "0-4", "1-6", "1-8", "2-10", "2-12"],
    ),
    "monitor, ends of epochs": (
        {"monitor": "val/loss", "save_on_train_epoch_end": True},
        {"val_check_interval": 2},
        ["0-4", "1-8", "2-12"],
    ),
    "monitor, rare validations": (
        {"monitor": "val/loss", "every_n_epochs": 1},
        {"check_val_every_n_epoch": 2},
        ["1-8"],
    ),
    "monitor, rare saves": (
        {"monitor": "val/loss", "every_n_epochs": 2},
        {"val_check_interval": 2},
        ["1-6", "1-8"],
    ),
    "monitor waits for a validation": (
        {"monitor": "val/loss", "every_n_train_steps": 3},
        {},
        ["0-4", "1-8", "2-12"],
    ),
    "monitor waits in steps": (
        {"monitor": "val/loss", "every_n_train_steps": 5},
        {"val_check_interval": 2},
        ["1-6", "2-10"],
    ),
    "training metric": ({"monitor": "train/mean"}, {}, ["0-4", "1-8", "2-12"]),
    "name waits for both": (
        {"monitor": "val/loss", "filename": "{epoch}-{step}-{train/mean:.0f}"},
        {"val_check_interval": 2},
        ["0-4-1", "1-8-1", "2-12-1"],
    ),
}


class Means(Linear):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("train/mean", 1.0, on_step=False, on_epoch=True)
        return super().training_step(batch, batch_idx)


@pytest.mark.parametrize("case", RHYTHMS)
def test_when_it_saves(case: str, tmp_path: Path) -> None:
    arguments, options, expected = RHYTHMS[case]
    keep = ModelCheckpoint(
        tmp_path,
        save_top_k=-1,
        save_last=False,
        auto_insert_metric_name=False,
        mode="min",
        **arguments,
    )
    fit(Means(), keep, max_epochs=3, **options)
    assert saved(tmp_path) == expected


def test_time_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            self.now += 1.0
            return self.now

    monkeypatch.setattr(model_checkpoint, "time", Clock())
    keep = ModelCheckpoint(
        tmp_path, train_time_interval=timedelta(seconds=5), save_top_k=-1, save_last=False
    )
    fit(Linear(), keep, max_epochs=3)
    # the clock is read once when training starts and once a batch
    assert saved(tmp_path) == ["epoch=1-step=5", "epoch=2-step=10"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"every_n_train_steps": 3},
        {"save_on_train_epoch_end": True},
        {"save_on_train_epoch_end": False},
        {"every_n_epochs": 2},
    ],
)
@pytest.mark.parametrize("per_epoch", [1, 2, 4])
def test_score_belongs_to_the_weights_in_the_file(
    arguments: dict[str, Any], per_epoch: int, tmp_path: Path
) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min", save_top_k=-1, **arguments)
    fit(Linear(), keep, max_epochs=4, val_check_interval=Batches(4 // per_epoch))
    assert keep.best_k_models
    for path, score in keep.best_k_models.items():
        task = Linear()
        results = quiet().validate(task, loader(1), ckpt_path=path, verbose=False)
        assert results[0]["val/loss"] == score


# Which stay.

SEQUENCES: dict[str, tuple[list[float], int, str, list[int]]] = {
    "one": ([3, 1, 2], 1, "min", [1]),
    "max": ([3, 1, 2], 1, "max", [0]),
    "two": ([3, 1, 2, 5], 2, "min", [1, 2]),
    "ties stay with the older": ([2, 2, 2, 2], 2, "min", [0, 1]),
    "tie with the best": ([1, 2, 1], 1, "min", [0]),
    "nan first": ([NAN, 2, 3], 1, "min", [1]),
    "nan is never best": ([2, NAN, 1], 2, "max", [0, 2]),
    "only nan": ([NAN, NAN], 2, "min", []),
    "inf and -inf": ([INF, 1, -INF], 1, "min", [1]),
    "all, nan too": ([2, NAN, 1], -1, "min", [2, 0]),
    "none": ([2, 1], 0, "min", []),
    "falling": ([5, 4, 3, 2], 2, "max", [0, 1]),
    "rising": ([1, 2, 3, 4], 2, "max", [3, 2]),
}


@pytest.mark.parametrize("case", SEQUENCES)
def test_best_k(case: str, tmp_path: Path) -> None:
    scores, k, mode, best = SEQUENCES[case]
    keep = ModelCheckpoint(
        tmp_path, "{epoch}", monitor="val/score", mode=mode, save_top_k=k, save_last=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = fit(Scripted(scores), keep, max_epochs=len(scores))
    paths = [str(tmp_path / f"epoch={epoch}.ckpt") for epoch in best]
    assert list(keep.best_k_models) == paths
    assert list(keep.best_k_models.values()) == [scores[epoch] for epoch in best]
    everything = [f"epoch={epoch}" for epoch in range(len(scores))]
    if k != 0:
        assert names(tmp_path) == (everything if k == -1 else sorted(f"epoch={e}" for e in best))
    if best:
        assert (keep.best_model_path, keep.best_model_score) == (paths[0], scores[best[0]])
        assert result.best is not None
        assert (result.best.path, result.best.score) == (paths[0], scores[best[0]])
        assert result.best.monitor == "val/score"
    else:
        assert (keep.best_model_path, keep.best_model_score) == ("", None)
        assert result.best is None


def test_value_that_is_not_finite_is_named_once(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/score", mode="min")
    with pytest.warns(UserWarning, match=r"'val/score' is nan after update 4.*never ranked") as w:
        fit(Scripted([NAN, 1, NAN]), keep, max_epochs=3)
    assert len(w) == 1


def test_nothing_ranked_is_named(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min")
    with pytest.warns(UserWarning, match=r"no finite value for whole epochs.*none is the best"):
        fit(Linear(), keep, max_steps=2)
    assert names(tmp_path) == ["last"]


def test_newest_stays_without_a_monitor(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path)
    result = fit(Linear(), keep, max_epochs=3)
    assert names(tmp_path) == ["epoch=2-step=12"]
    assert (keep.best_model_path, keep.best_k_models, result.best) == ("", {}, None)
    assert str(result.last) == str(tmp_path / "epoch=2-step=12.ckpt")


def test_old_file_is_removed_after_the_new_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present: list[list[str]] = []
    write = mt.io.save_tree

    def spy(path: str, tree: Any) -> None:
        present.append([name for name in names(tmp_path) if name[0] != "."])
        write(path, tree)

    monkeypatch.setattr(mt.io, "save_tree", spy)
    keep = ModelCheckpoint(tmp_path, "{epoch}", monitor="val/score", mode="min", save_last=False)
    fit(Scripted([3, 2, 1]), keep, max_epochs=3)
    assert present == [[], ["epoch=0"], ["epoch=1"]]
    assert names(tmp_path) == ["epoch=2"]


@pytest.mark.parametrize("save_last", [True, False])
def test_save_that_fails_leaves_everything_as_it_was(
    save_last: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = mt.io.save_tree, [0]

    def fail(path: str, tree: Any) -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise CheckpointError("disk full")
        write(path, tree)

    monkeypatch.setattr(mt.io, "save_tree", fail)
    keep = ModelCheckpoint(
        tmp_path, "{epoch}", monitor="val/score", mode="min", save_last=save_last
    )
    with pytest.raises(CheckpointError, match="disk full"):
        fit(Scripted([3, 2, 1]), keep, max_epochs=3)
    assert keep.best_k_models == {str(tmp_path / "epoch=0.ckpt"): 3}
    assert names(tmp_path) == (["epoch=0", "last"] if save_last else ["epoch=0"])
    for name in names(tmp_path):
        assert mt.io.verify(tmp_path / f"{name}.ckpt")
    assert keep.last_model_path == (str(tmp_path / "last.ckpt") if save_last else "")


def test_own_file_of_the_same_name_is_replaced(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, "best", monitor="val/score", mode="min", save_last=False)
    fit(Scripted([3, 2, 4]), keep, max_epochs=3)
    assert names(tmp_path) == ["best"]
    assert load_tree(tmp_path / "best.ckpt")["epoch"] == 1
    keep = ModelCheckpoint(
        tmp_path / "two", "best", monitor="val/score", mode="min", save_top_k=2, save_last=False
    )
    fit(Scripted([3, 2, 1]), keep, max_epochs=3)
    assert {Path(path).name: score for path, score in keep.best_k_models.items()} == {
        "best.ckpt": 1,
        "best-v1.ckpt": 2,
    }


@pytest.mark.parametrize("count", [True, False])
def test_files_of_another_run(count: bool, tmp_path: Path) -> None:
    for _ in range(2):
        keep = ModelCheckpoint(tmp_path, "{epoch}", save_last=True, enable_version_counter=count)
        fit(Linear(), keep, max_epochs=1)
    more = ["epoch=0-v1", "last-v1"] if count else []
    assert names(tmp_path) == sorted(["epoch=0", "last", *more])


# The last one.

LASTS: dict[str, tuple[dict[str, Any], dict[str, Any], str, list[str]]] = {
    "newest file is the last": ({}, {}, "epoch=2-step=12", ["epoch=2-step=12"]),
    "best is older": (
        {"monitor": "val/score", "mode": "min"},
        {},
        "last",
        ["epoch=0-step=4", "last"],
    ),
    "asked for": ({"save_last": True}, {}, "last", ["epoch=2-step=12", "last"]),
    "unwanted": ({"save_last": False}, {}, "", ["epoch=2-step=12"]),
    "nothing else": ({"save_top_k": 0}, {}, "last", ["last"]),
    "run that is cut": ({}, {"max_steps": 6}, "last", ["epoch=0-step=4", "last"]),
    "steps": (
        {"every_n_train_steps": 5, "save_last": True},
        {},
        "last",
        ["epoch=2-step=10", "last"],
    ),
}


@pytest.mark.parametrize("case", LASTS)
def test_last(case: str, tmp_path: Path) -> None:
    arguments, options, last, files = LASTS[case]
    keep = ModelCheckpoint(tmp_path, **arguments)
    task = Scripted([1, 2, 3])
    result = fit(task, keep, **{"max_epochs": 3, **options})
    assert names(tmp_path) == files
    if not last:
        assert result.last is task
        assert keep.last_model_path == ""
        return
    assert str(result.last) == keep.last_model_path == str(tmp_path / f"{last}.ckpt")
    tree = load_tree(keep.last_model_path)
    assert tree["global_step"] == result.global_step
    for name, value in task.state_dict().items():
        np.testing.assert_array_equal(tree["state_dict"][name].numpy(), value.numpy())


def test_last_is_brought_up_to_date_while_the_monitor_is_awaited(tmp_path: Path) -> None:
    keep = ModelCheckpoint(
        tmp_path, monitor="val/loss", mode="min", every_n_train_steps=2, save_last=True
    )
    steps = Spy("on_train_batch_end", lambda t: Path(tmp_path / "last.ckpt").exists())
    with pytest.raises(ZeroDivisionError):
        fit(Linear(), keep, steps, Fails("on_validation_start", 1, ZeroDivisionError()))
    assert load_tree(tmp_path / "last.ckpt")["global_step"] == 4
    assert steps.seen == [False, False, True, True]


def test_last_is_a_file_of_its_own(tmp_path: Path) -> None:
    keep = ModelCheckpoint(
        tmp_path, "last-{epoch}", save_last=True, monitor="val/score", mode="max"
    )
    result = fit(Scripted([1, 2, 3]), keep, max_epochs=3)
    assert names(tmp_path) == ["last", "last-epoch=2"]
    os.remove(tmp_path / "last-epoch=2.ckpt")
    assert load_tree(result.last)["global_step"] == 12


def test_ctrl_c_leaves_the_last_state(tmp_path: Path) -> None:
    class Pressed(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.trainer.interrupt.requested = self.global_step == 5
            return super().training_step(batch, batch_idx)

    result = fit(Pressed(), ModelCheckpoint(tmp_path), max_epochs=3)
    assert result.status == "interrupted"
    assert load_tree(result.last)["global_step"] == 6


def test_two_of_them_share_the_last_file(tmp_path: Path) -> None:
    best = ModelCheckpoint(tmp_path, "best", monitor="val/score", mode="min")
    regular = ModelCheckpoint(tmp_path, every_n_train_steps=5, save_top_k=-1)
    result = fit(Scripted([1, 2, 3]), best, regular, max_epochs=3)
    assert names(tmp_path) == ["best", "epoch=1-step=5", "epoch=2-step=10", "last"]
    assert str(result.best) == str(tmp_path / "best.ckpt")
    assert str(result.last) == best.last_model_path == regular.last_model_path


def test_test_takes_the_best(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min", save_last=True)
    trainer = quiet(keep, max_epochs=3)
    result = trainer.fit(Linear(), loader(), loader(1))
    [metrics] = trainer.test(result.best, loader(1), verbose=False)
    assert metrics["val/loss"] == result.best.score == keep.best_model_score
    assert metrics == trainer.test(None, loader(1), ckpt_path="best", verbose=False)[0]
    assert metrics != trainer.test(result.last, loader(1), verbose=False)[0]


# Contents.


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("event", ["on_before_backward", "on_train_batch_end", "on_validation_end"])
def test_exception(wanted: bool, event: str, tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, every_n_epochs=0, save_on_exception=wanted)
    fails = Fails(event, 2, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError) as caught:
        fit(Linear(), keep, fails, max_epochs=4)
    assert len(names(tmp_path)) == wanted
    if wanted:
        path = str(next(tmp_path.iterdir()))
        assert re.search(r"exception-epoch=\d-step=\d.ckpt$", path)
        assert f"ModelCheckpoint saved {path}" in caught.value.__notes__
        again = ModelCheckpoint(tmp_path / "again", every_n_epochs=0)
        assert fit(Linear(), again, ckpt=path, max_epochs=4).global_step == 16


def test_exception_before_training_saves_nothing(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, save_on_exception=True)
    with pytest.raises(ZeroDivisionError):
        fit(Linear(), keep, Fails("on_fit_start", 1, ZeroDivisionError()))
    assert not names(tmp_path)


def test_default_folder(tmp_path: Path) -> None:
    keep = ModelCheckpoint()
    fit(Linear(), keep, max_epochs=1, default_root_dir=tmp_path)
    assert keep.dirpath == str(tmp_path / "checkpoints")
    assert names(tmp_path / "checkpoints") == ["epoch=0-step=4"]


def test_folder_of_the_logger(tmp_path: Path) -> None:
    from minitorch.loggers import CSVLogger

    logger = CSVLogger(tmp_path, name="run")
    keep = ModelCheckpoint()
    fit(Linear(), keep, max_epochs=1, logger=logger)
    assert keep.dirpath == str(Path(str(logger.log_dir)) / "checkpoints")


def test_verbose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep = ModelCheckpoint(tmp_path, "{epoch}", monitor="val/score", mode="min", verbose=True)
    fit(Scripted([1, 2]), keep, max_epochs=2)
    assert capsys.readouterr().out == (
        f"ModelCheckpoint: saved {tmp_path}/epoch=0.ckpt (val/score = 1)\n"
        f"ModelCheckpoint: saved {tmp_path}/last.ckpt\n"
    )


def test_enable_checkpointing_adds_one(tmp_path: Path) -> None:
    result = fit(Linear(), max_epochs=1, enable_checkpointing=True, default_root_dir=tmp_path)
    assert str(result.last) == str(tmp_path / "checkpoints" / "epoch=0-step=4.ckpt")


def test_fast_dev_run_saves_nothing(tmp_path: Path) -> None:
    fit(Linear(), ModelCheckpoint(tmp_path), fast_dev_run=True)
    assert not names(tmp_path)


# State.


def test_unknown_names_are_found_early(tmp_path: Path) -> None:
    for keep, message in [
        (
            ModelCheckpoint(tmp_path, monitor="val/los", mode="min"),
            r"ModelCheckpoint: monitor='val/los' was never logged.*Did you mean 'val/loss'\?",
        ),
        (
            ModelCheckpoint(tmp_path, "{epoch}-{val/los:.2f}"),
            r"ModelCheckpoint: {val/los} in filename was never logged.*Did you mean 'val/loss'\?",
        ),
    ]:
        trainer = quiet(keep, max_epochs=2)
        with pytest.raises(TrainerError, match=message):
            trainer.fit(Linear(), loader(), loader(1))
        assert trainer.position.batches == 0


def test_value_of_one_batch_is_refused(tmp_path: Path) -> None:
    task: Any = Linear()
    task.training_step = lambda batch: task.log("x", 1.0, on_epoch=False) or task.loss(batch)
    with pytest.raises(TrainerError, match="only as the value of single batches"):
        quiet(ModelCheckpoint(tmp_path, monitor="x", mode="min")).fit(task, loader())


def test_folder_is_checked_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    trainer = quiet(ModelCheckpoint(tmp_path / "file" / "x"))
    with pytest.raises(ArgumentError, match="dirpath must be a folder"):
        trainer.fit(Linear(), loader())
    assert trainer.global_step == 0


def test_direction_must_be_given() -> None:
    with pytest.raises(ArgumentError, match=r"ModelCheckpoint: a name does not tell whether"):
        ModelCheckpoint(monitor="val/acc")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"save_top_k": -2}, "save_top_k must be an integer ≥ 0, or -1 for all. Got -2."),
        ({"save_top_k": 1.5}, "save_top_k must be an integer ≥ 0, or -1 for all. Got 1.5."),
        ({"save_top_k": 3}, "save_top_k must be 1, 0 or -1 without a monitor. Got 3. Name a"),
        ({"save_last": "copy"}, "save_last must be True, \"link\", False or None. Got 'copy'."),
        ({"every_n_train_steps": 0}, "every_n_train_steps must be an integer ≥ 1 or None. Got 0"),
        ({"every_n_epochs": -1}, "every_n_epochs must be an integer ≥ 0 or None. Got -1."),
        ({"train_time_interval": 60}, "train_time_interval must be a timedelta > 0 or None."),
        (
            {"every_n_epochs": 1, "every_n_train_steps": 5},
            "one argument of every, every_n_train_steps, every_n_epochs, train_time_interval sets "
            "the rhythm. Got every_n_train_steps and every_n_epochs. Keep one, or pass several",
        ),
        ({"filename": "{epoch"}, "filename must be a template"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str, tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, **arguments)
    with pytest.raises(ArgumentError, match=re.escape(f"ModelCheckpoint: {message}")):
        Trainer(callbacks=keep, enable_progress_bar=False).fit(Linear(), loader())
