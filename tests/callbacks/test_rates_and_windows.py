"""Callbacks that change learning: rates by function and by plateau, accumulation; and History."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from averaging_tasks import check_resumes
from scripted_tasks import Linear, Scripted, Spy, fit

from minitorch import optim
from minitorch.callbacks import (
    GradientAccumulationScheduler,
    History,
    LearningRateScheduler,
    ReduceLROnPlateau,
)
from minitorch.errors import ArgumentError, TrainerError


def rates(event: str = "on_train_batch_start") -> Spy:
    return Spy(event, lambda t: [g["lr"] for g in t.optimizers[0].param_groups])


# LearningRateScheduler.

FUNCTIONS: dict[str, tuple[Any, list[float]]] = {
    "epoch and rate": (lambda epoch, lr: lr * 0.5 if epoch else lr, [0.01, 0.005, 0.0025]),
    "epoch": (lambda epoch: 0.1 / (epoch + 1), [0.1, 0.05, 0.1 / 3]),
    "defaults": (lambda epoch, scale=0.1: scale * (epoch + 1), [0.1, 0.2, 0.3]),
    "anything": (lambda *args: args[1], [0.01, 0.01, 0.01]),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_rates_from_a_function(case: str) -> None:
    function, expected = FUNCTIONS[case]
    seen = rates()
    fit(Linear(), LearningRateScheduler(function), seen, max_epochs=3)
    assert [one for [one] in seen.seen[::4]] == pytest.approx(expected)


def test_each_group_from_its_own_rate() -> None:
    class Two(Linear):
        def configure_optimizers(self) -> Any:
            groups = [{"params": [p], "lr": lr} for p, lr in zip(self.parameters(), (0.1, 0.2))]  # noqa: B905
            return optim.SGD(groups, lr=0.1)

    seen = rates()
    fit(Two(), LearningRateScheduler(lambda epoch, lr: lr / 2), seen, max_epochs=1)
    assert seen.seen[0] == [0.05, 0.1]


def test_rates_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    fit(Linear(), LearningRateScheduler(lambda epoch: 0.5, verbose=1), max_epochs=1)
    assert capsys.readouterr().out == "LearningRateScheduler: epoch 0, rate 0.5\n"


def test_wrong_rates_are_refused() -> None:
    for value in (None, -0.1, float("nan"), "a"):
        with pytest.raises(ArgumentError, match=r"must return a rate ≥ 0. Got .* for epoch 0"):
            fit(Linear(), LearningRateScheduler(lambda epoch, v=value: v), max_epochs=1)
    with pytest.raises(ArgumentError, match="schedule must be a function. Got 0.1"):
        fit(Linear(), LearningRateScheduler(0.1), max_epochs=1)  # type: ignore[arg-type]


# ReduceLROnPlateau.

PLATEAUS: dict[str, tuple[dict[str, Any], list[float], list[float]]] = {
    # options, scores of the epochs, factors of the rate after them
    "patience": ({"patience": 2}, [3, 2, 2, 2, 2, 2], [1, 1, 1, 0.1, 0.1, 0.01]),
    "better in between": ({"patience": 2}, [3, 3, 2, 2, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0.1]),
    "small steps": ({"patience": 1, "min_delta": 0.5}, [3, 2.8, 2.4], [1, 0.1, 0.1]),
    "higher": ({"patience": 1, "mode": "max"}, [1, 2, 1], [1, 1, 0.1]),
    "cooldown": ({"patience": 1, "cooldown": 2}, [1, 1, 1, 1, 1], [1, 0.1, 0.1, 0.01, 0.01]),
    "floor": ({"patience": 1, "min_lr": 0.005}, [1, 1, 1], [1, 0.5, 0.5]),
    "half": ({"patience": 1, "factor": 0.5}, [1, 1, 1], [1, 0.5, 0.25]),
}


def plateau(**options: Any) -> ReduceLROnPlateau:
    return ReduceLROnPlateau("val/score", **{"mode": "min", **options})


@pytest.mark.parametrize("case", PLATEAUS)
def test_rates_fall_on_a_plateau(case: str) -> None:
    options, scores, factors = PLATEAUS[case]
    seen = rates("on_fit_end"), []

    class Task(Scripted):
        def on_train_epoch_start(self) -> None:
            seen[1].append(self.trainer.optimizers[0].param_groups[0]["lr"])

    fit(Task(scores), plateau(**options), seen[0], max_epochs=len(scores))
    after = [*seen[1][1:], seen[0].seen[0][0]]
    assert after == pytest.approx([0.01 * factor for factor in factors])


def test_each_value_counts_once(tmp_path: Path) -> None:
    seen = rates("on_fit_end")
    fit(Scripted([1.0]), plateau(patience=3), seen, max_epochs=6, check_val_every_n_epoch=2)
    assert seen.seen == [[0.01]]


def test_a_reduction_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    fit(Scripted([1.0]), plateau(patience=1, verbose=1), max_epochs=2)
    assert capsys.readouterr().out == ("ReduceLROnPlateau: val/score did not improve, rate 0.001\n")


PLATEAU_ERRORS: dict[str, tuple[dict[str, Any], str]] = {
    "mode": ({"mode": None}, "mode must be given"),
    "factor": ({"factor": 1.0}, "factor must be a number between 0 and 1. Got 1.0"),
    "patience": ({"patience": -1}, "patience must be an integer ≥ 0. Got -1"),
    "cooldown": ({"cooldown": 0.5}, "cooldown must be an integer ≥ 0. Got 0.5"),
    "delta": ({"min_delta": -1}, "min_delta must be a number ≥ 0. Got -1"),
    "floor": ({"min_lr": "0"}, "min_lr must be a number ≥ 0. Got '0'"),
}


@pytest.mark.parametrize("case", PLATEAU_ERRORS)
def test_wrong_arguments(case: str) -> None:
    options, message = PLATEAU_ERRORS[case]
    with pytest.raises(ArgumentError, match=message):
        fit(Scripted([1.0]), plateau(**options), max_epochs=1)


def test_an_unknown_metric_is_an_error() -> None:
    with pytest.raises(TrainerError, match="val/scoer"):
        fit(Scripted([1.0]), ReduceLROnPlateau("val/scoer", mode="min"), max_epochs=1)


# GradientAccumulationScheduler.


def windows(scheduling: dict[int, int], **options: Any) -> list[int]:
    steps = Spy("on_train_epoch_end", lambda t: t.global_step)
    fit(Linear(), GradientAccumulationScheduler(scheduling), steps, max_epochs=3, **options)
    return steps.seen


def test_updates_by_epoch() -> None:
    assert windows({0: 4, 1: 2, 2: 1}) == [1, 3, 7]
    assert windows({1: 3}) == [4, 6, 8]


def test_a_schedule_learns_how_many_updates_there_are() -> None:
    seen: list[float] = []

    class Task(Linear):
        def configure_optimizers(self) -> Any:
            seen.append(self.trainer.estimated_stepping_batches)
            return super().configure_optimizers()

    fit(Task(), GradientAccumulationScheduler({1: 3}), max_epochs=3)
    assert seen == [8]


SCHEDULING: dict[str, Any] = {
    "empty": {},
    "list": [1, 2],
    "epoch": {-1: 2},
    "batches": {0: 0},
    "share": {0: 0.5},
}


@pytest.mark.parametrize("case", SCHEDULING)
def test_wrong_scheduling(case: str) -> None:
    with pytest.raises(ArgumentError, match="scheduling must be a dict from epochs ≥ 0 to batches"):
        windows(SCHEDULING[case])


def test_one_place_says_how_many_batches() -> None:
    with pytest.raises(ArgumentError, match="Got accumulate_grad_batches=2 as well"):
        windows({0: 2}, accumulate_grad_batches=2)


def test_manual_optimization_accumulates_itself() -> None:
    task = type("Manual", (Linear,), {"automatic_optimization": False})
    with pytest.raises(TrainerError, match="accumulation works with automatic optimization"):
        fit(task(), GradientAccumulationScheduler({0: 2}), max_epochs=1)


# History.


def test_history_by_epoch() -> None:
    class Task(Scripted):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("train/index", float(batch_idx), on_step=False, on_epoch=True)
            return self.loss(batch)

    history = History()
    fit(Task([3.0, 2.0]), history, max_epochs=4, check_val_every_n_epoch=2)
    assert history.history["val/score"] == [3.0, 2.0]
    assert history.epochs["val/score"] == [1, 3]
    assert history.history["train/index"] == [1.5] * 4
    assert history.epoch == [0, 1, 2, 3]


MAKERS: dict[str, Any] = {
    "rates": lambda: LearningRateScheduler(lambda epoch, lr: lr * 0.5),
    "plateau": lambda: ReduceLROnPlateau("val/loss", mode="min", patience=1, min_delta=9.0),
    "windows": lambda: GradientAccumulationScheduler({0: 1, 1: 3, 3: 2}),
    "history": History,
}


@pytest.mark.parametrize("case", MAKERS)
def test_resumed_equals_uninterrupted(case: str, tmp_path: Path) -> None:
    whole = check_resumes(Linear, MAKERS[case], tmp_path, (1, 4, 6, 13))
    if case == "history":
        assert whole.epoch == [0, 1, 2, 3]


def test_history_of_a_resumed_run_is_whole(tmp_path: Path) -> None:
    from minitorch.callbacks import ModelCheckpoint

    keep = ModelCheckpoint(tmp_path, save_last=True)
    fit(Scripted([3.0, 2.0]), History(), keep, max_epochs=2)
    history = History()
    keep = ModelCheckpoint(tmp_path / "again", save_last=True)
    fit(Scripted([0.0, 0.0, 1.0]), history, keep, ckpt=tmp_path / "last.ckpt", max_epochs=3)
    assert history.history["val/score"] == [3.0, 2.0, 1.0]
