"""EarlyStopping: when it stops, why it says so, and that it never watches nothing."""

from __future__ import annotations

import math
import os
import re
import signal
import warnings
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Linear, Scripted, fit, loader, quiet

from minitorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, Order
from minitorch.errors import ArgumentError, TrainerError
from minitorch.io import load_tree
from minitorch.trainer import Trainer

NAN, INF = math.nan, math.inf

# scores, arguments → epochs done, status, what the reason says
STOPS: dict[str, tuple[list[float], dict[str, Any], int, str, str]] = {
    "improves": ([5, 4, 3, 2, 1, 0], {"mode": "min"}, 6, "completed", "max_epochs=6"),
    "min stagnates": ([3, 2, 2, 2, 2, 2], {"mode": "min"}, 5, "stopped", "for 3 values in a row"),
    "max stagnates": ([1, 2, 1, 1, 1, 1], {"mode": "max"}, 5, "stopped", r"\(best 2\)"),
    "max read as max": ([1, 2, 3, 4, 5, 6], {"mode": "max"}, 6, "completed", "max_epochs"),
    "max read as min": (
        [1, 2, 3, 4, 5, 6],
        {"mode": "min", "patience": 1},
        2,
        "stopped",
        r"val/score did not improve for 1 values in a row \(best 1\)",
    ),
    "patience 0": ([1, 1, 1], {"mode": "min", "patience": 0}, 2, "stopped", "for 1 values"),
    "wait starts again": (
        [5, 6, 4, 5, 3, 4],
        {"mode": "min", "patience": 2},
        6,
        "completed",
        "max_epochs",
    ),
    "min_delta": (
        [5, 4.95, 4.9, 4.85, 0, 0],
        {"mode": "min", "min_delta": 0.5},
        4,
        "stopped",
        r"\(best 5\)",
    ),
    "min_delta is strict": (
        [5, 4.5, 4, 3.5],
        {"mode": "min", "min_delta": 0.5, "patience": 1},
        2,
        "stopped",
        "for 1 values",
    ),
    "nan": ([1, NAN, 1], {"mode": "min"}, 2, "failed", "= nan is not finite .epoch 1, update 8."),
    "nan first": ([NAN], {"mode": "max"}, 1, "failed", "= nan is not finite"),
    "inf is no best": ([1, INF], {"mode": "max"}, 2, "failed", "= inf is not finite"),
    "nan allowed": (
        [NAN, NAN, NAN, NAN],
        {"mode": "min", "check_finite": False},
        3,
        "stopped",
        "no value yet",
    ),
    "nan between": (
        [3, NAN, 2, NAN, 1, 0],
        {"mode": "min", "check_finite": False, "patience": 2},
        6,
        "completed",
        "max_epochs",
    ),
    "threshold": (
        [1, 2, 3, 4],
        {"mode": "max", "stopping_threshold": 2.5},
        3,
        "stopped",
        "= 3 is better than 2.5",
    ),
    "divergence": (
        [1, 2, 30, 4],
        {"mode": "min", "divergence_threshold": 10},
        3,
        "failed",
        "= 30 is worse than 10",
    ),
}


@pytest.mark.parametrize("case", STOPS)
def test_when_and_why_it_stops(case: str) -> None:
    scores, arguments, epochs, status, reason = STOPS[case]
    stop = EarlyStopping("val/score", **arguments)
    result = fit(Scripted(scores), stop, max_epochs=6)
    assert (result.epochs, result.status) == (epochs, status)
    assert re.search(reason, result.reason)
    assert stop.stopped_epoch == (epochs - 1 if status != "completed" else 0)
    if status != "completed":
        assert result.reason == f"EarlyStopping: {stop.stopping_reason}"


def test_stop_waits_for_min_epochs_and_is_off_if_the_metric_improves() -> None:
    stop = EarlyStopping("val/score", mode="min", patience=1)
    result = fit(Scripted([5, 6, 6, 4, 3]), stop, max_epochs=5, min_epochs=4)
    assert (result.status, result.epochs) == ("completed", 5)
    stop = EarlyStopping("val/score", mode="min", patience=1)
    result = fit(Scripted([5, 6, 6, 6, 6]), stop, max_epochs=5, min_epochs=4)
    assert (result.status, result.epochs) == ("stopped", 4)


@pytest.mark.parametrize("least", [{"min_steps": 9}, {"min_epochs": 3}])
def test_failure_does_not_wait(least: dict[str, int]) -> None:
    stop = EarlyStopping("val/score", mode="min")
    result = fit(Scripted([NAN]), stop, max_epochs=5, **least)
    assert (result.status, result.epochs) == ("failed", 1)


def test_stop_waits_for_min_steps() -> None:
    stop = EarlyStopping("val/score", mode="min", patience=1)
    assert fit(Scripted([1]), stop, max_epochs=5, min_steps=11).global_step == 12


def test_failure_is_not_covered_by_a_later_stop() -> None:
    class Later(Callback):
        order = EarlyStopping.order

        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            trainer.stop("I want to")

    stop = EarlyStopping("val/score", mode="min")
    result = fit(Scripted([NAN]), stop, Later(), max_epochs=5)
    assert (result.status, result.reason[:13]) == ("failed", "EarlyStopping")


class Both(Linear):
    """A training metric for the epoch besides those of validation."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("train/score", 1.0, on_epoch=True)
        return self.loss(batch)


# monitor, arguments, validations per epoch → values counted in three epochs
COUNTED = {
    "validation": ("val/loss", {}, 1, 3),
    "several validations": ("val/loss", {}, 2, 6),
    "at the end of epochs": ("val/loss", {"check_on_train_epoch_end": True}, 2, 3),
    "validations only": ("val/loss", {"check_on_train_epoch_end": False}, 2, 6),
    "training": ("train/score", {}, 2, 3),
    "training, full name": ("train/score_epoch", {}, 1, 3),
    "training is not known in validations": (
        "train/score",
        {"check_on_train_epoch_end": False},
        1,
        0,
    ),
}


@pytest.mark.parametrize("case", COUNTED)
def test_each_value_is_counted_once(case: str) -> None:
    monitor, arguments, per_epoch, count = COUNTED[case]
    stop = EarlyStopping(monitor, mode="max", min_delta=1e9, patience=99, **arguments)
    fit(Both(), stop, max_epochs=3, val_check_interval=4 // per_epoch)
    assert stop.wait_count == max(0, count - 1)
    assert (stop.best_score is None) == (count == 0)


def test_rare_validation_is_not_counted_in_between() -> None:
    stop = EarlyStopping("val/score", mode="min", patience=2)
    result = fit(Scripted([1]), stop, max_epochs=12, check_val_every_n_epoch=3)
    assert result.epochs == 9


def test_verbose_prints_improvements(capsys: pytest.CaptureFixture[str]) -> None:
    fit(Scripted([2, 1, 1]), EarlyStopping("val/score", mode="min", verbose=True), max_epochs=3)
    assert capsys.readouterr().out == (
        "EarlyStopping: val/score improved to 2\nEarlyStopping: val/score improved from 2 to 1\n"
    )


@pytest.mark.parametrize("bar", [True, False])
def test_the_end_is_told_once_where_there_is_a_bar(
    bar: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    stop = EarlyStopping("val/score", mode="min", patience=1)
    trainer = Trainer(max_epochs=5, callbacks=stop, enable_progress_bar=bar, logger=False)
    trainer.fit(Scripted([2, 2]), loader(), loader(1))
    told = "did not improve for 1 values in a row (best 2). Training ends in epoch 1."
    captured = capsys.readouterr()
    assert (captured.out + captured.err).count(told) == bar


def test_object_starts_afresh_in_another_fit() -> None:
    stop = EarlyStopping("val/score", mode="min", patience=1)
    for _ in range(2):
        assert fit(Scripted([2, 2]), stop, max_epochs=5).epochs == 2


def test_evaluations_do_not_count() -> None:
    stop = EarlyStopping("val/loss", mode="min")
    trainer = quiet(stop, max_epochs=1)
    task = Linear()
    trainer.fit(task, loader(), loader(1))
    before = stop.state_dict()
    trainer.validate(task, loader(1), verbose=False)
    assert stop.state_dict() == before


# Names.


@pytest.mark.parametrize(
    ("monitor", "batches", "message"),
    [
        ("val/los", 0, r"monitor='val/los' was never logged. Logged are val/loss. Did you mean"),
        (
            "train/los",
            1,
            r"train/loss_epoch, val/loss. Did you mean 'train/loss'\?",
        ),
        ("loss", 4, r"monitor='loss' was never logged. Logged are train/loss, train/loss_epoch"),
        ("accuracy", 4, "was never logged. Logged are train/loss, train/loss_epoch, val/loss.$"),
    ],
)
def test_unknown_name_is_an_error_as_early_as_it_is_certain(
    monitor: str, batches: int, message: str
) -> None:
    trainer = quiet(EarlyStopping(monitor, mode="min"), max_epochs=2)
    with pytest.raises(TrainerError, match=message):
        trainer.fit(Linear(), loader(), loader(1))
    assert trainer.position.batches == batches


def test_nothing_was_logged() -> None:
    class Silent(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.loss(batch)

    trainer = quiet(EarlyStopping("val/loss", mode="min"), max_epochs=2)
    with pytest.raises(TrainerError, match=r"nothing was. Call self.log\('val/loss', \.\.\.\)"):
        trainer.fit(Silent(), loader())


def test_name_that_comes_later_is_fine() -> None:
    class Late(Linear):
        def on_train_epoch_end(self) -> None:
            self.log("late", 1.0)

    stop = EarlyStopping("late", mode="min", patience=1)
    assert fit(Late(), stop, max_epochs=5).epochs == 2


@pytest.mark.parametrize("monitor", ["alone", "both_step"])
def test_values_of_single_batches_are_refused(monitor: str) -> None:
    class Steps(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("both", 1.0, on_epoch=True)
            self.log("alone", 1.0, on_epoch=False)
            return super().training_step(batch, batch_idx)

    trainer = quiet(EarlyStopping(monitor, mode="min"), max_epochs=2)
    with pytest.raises(TrainerError, match=r"only as the value of single batches.*on_epoch=True"):
        trainer.fit(Steps(), loader())
    assert trainer.position.batches == 1


def test_step_value_of_a_name_that_validation_aggregates() -> None:
    class Same(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("loss", 100.0)
            return self.loss(batch)

        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("loss", 1.0)

    stop = EarlyStopping("loss", mode="min", patience=1)
    assert fit(Same(), stop, max_epochs=5).epochs == 2
    assert stop.best_score == 1.0


def test_not_strict_warns_at_the_end() -> None:
    stop = EarlyStopping("val/accuracy", mode="max", strict=False)
    with pytest.warns(UserWarning, match=r"monitor='val/accuracy' had no value in this run"):
        result = fit(Linear(), stop, max_epochs=2)
    assert result.status == "completed"


def test_short_run_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(Linear(), EarlyStopping("val/loss", mode="min"), max_steps=2)


# Arguments.


def test_direction_must_be_given() -> None:
    with pytest.raises(ArgumentError, match=r"mode must be given.*'val/acc' without it.*Pass mode"):
        EarlyStopping("val/acc")
    with pytest.raises(ArgumentError, match=r'mode must be "min" .* or "max" .*Got \'auto\''):
        EarlyStopping("val/acc", mode="auto")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"monitor": 3}, "monitor must be the name of a logged metric. Got 3."),
        ({"patience": -1}, "patience must be an integer ≥ 0. Got -1. It counts values."),
        ({"patience": 2.5}, "patience must be an integer ≥ 0. Got 2.5."),
        ({"patience": True}, "patience must be an integer ≥ 0. Got True."),
        ({"min_delta": -0.1}, "min_delta must be a number ≥ 0. Got -0.1. mode gives"),
        ({"min_delta": NAN}, "min_delta must be a number ≥ 0. Got nan."),
        ({"stopping_threshold": "1"}, "stopping_threshold must be a number or None. Got '1'."),
        ({"divergence_threshold": NAN}, "divergence_threshold must be a number or None. Got nan."),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    stop = EarlyStopping(**{"monitor": "val/loss", "mode": "min", **arguments})
    with pytest.raises(ArgumentError, match=re.escape(f"EarlyStopping: {message}")):
        fit(Linear(), stop, max_epochs=1)


class Follows(Callback):
    """Keeps the weights after each validation."""

    order = Order.PERSIST

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            self.seen.append(module.linear.weight.detach().numpy().copy())


@pytest.mark.parametrize("ending", ["patience", "epochs", "Ctrl-C"])
def test_best_weights_come_back(ending: str, tmp_path: Any) -> None:
    class Presses(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            if ending == "Ctrl-C" and trainer.current_epoch == 3:
                os.kill(os.getpid(), signal.SIGINT)

    stop = EarlyStopping(
        "val/score", mode="min", patience=2 if ending == "patience" else 9, verbose=True
    )
    stop.restore_best_weights = True
    follows, task = Follows(), Scripted([3, 1, 2, 2, 2])
    keep = ModelCheckpoint(tmp_path, save_last=True)
    result = fit(task, stop, follows, keep, Presses(), max_epochs=5)
    np.testing.assert_array_equal(task.linear.weight.detach().numpy(), follows.seen[1])
    last = load_tree(result.last)["state_dict"]["linear.weight"].numpy()
    np.testing.assert_array_equal(last, follows.seen[-1])


def test_best_weights_survive_a_resume(tmp_path: Any) -> None:
    def stop() -> EarlyStopping:
        return EarlyStopping("val/score", mode="min", patience=9, restore_best_weights=True)

    follows, task = Follows(), Scripted([3, 1, 2, 2])
    first = ModelCheckpoint(tmp_path, save_last=True)
    fit(task, stop(), follows, first, max_epochs=3)
    again = Scripted([3, 1, 2, 2])
    second = ModelCheckpoint(tmp_path, save_last=True)
    fit(again, stop(), second, ckpt=tmp_path / "last.ckpt", max_epochs=4)
    np.testing.assert_array_equal(again.linear.weight.detach().numpy(), follows.seen[1])
