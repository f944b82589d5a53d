"""Intervals that are longer than the fit are told before the first batch; others are not."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from toy_tasks import Regression, loader, quiet

import minitorch as mt
from minitorch.callbacks import Batches, Epochs, GradientAccumulationScheduler, Minutes, Steps
from minitorch.errors import PitfallWarning

# Two epochs of six batches: options of the Trainer that validate never, and what the text says.
NEVER: dict[str, tuple[dict[str, Any], str]] = {
    "epochs": ({"check_val_every_n_epoch": 3}, "check_val_every_n_epoch=3 in a fit of 2 epochs"),
    "inside of a late epoch": (
        {"check_val_every_n_epoch": 2, "val_check_interval": 3, "max_steps": 8},
        "check_val_every_n_epoch=2, val_check_interval=3 in a fit of 2 epochs, 8 batches",
    ),
    "batches": (
        {"check_val_every_n_epoch": None, "val_check_interval": 13},
        "val_check_interval=13 in a fit of 2 epochs, 12 batches",
    ),
    "steps": ({"val_check_interval": Steps(13)}, r"Steps\(13\) in a fit of .*12 updates"),
    "steps of windows": (
        {"val_check_interval": Steps(7), "accumulate_grad_batches": 2},
        r"Steps\(7\) in a fit of 2 epochs, 12 batches, 6 updates",
    ),
    "batches with their unit": ({"val_check_interval": Batches(13)}, r"Batches\(13\)"),
    "epochs with their unit": ({"val_check_interval": Epochs(3)}, r"Epochs\(3\)"),
}
IN_TIME: dict[str, dict[str, Any]] = {
    "epochs": {"check_val_every_n_epoch": 2},
    "inside of the last epoch": {
        "check_val_every_n_epoch": 2,
        "val_check_interval": 2,
        "max_steps": 8,
    },
    "batches": {"check_val_every_n_epoch": None, "val_check_interval": 12},
    "steps": {"val_check_interval": Steps(12)},
    "either": {"val_check_interval": Steps(13) | Epochs(1)},
    "time": {"val_check_interval": Minutes(600)},
    "endless": {"max_epochs": -1, "max_steps": 20, "check_val_every_n_epoch": 3},
    "default": {"max_steps": 3},
    "default of Lightning": {"max_steps": 3, "val_check_interval": 1.0},
    "no epoch": {"max_epochs": 0, "check_val_every_n_epoch": 2},
    "no update": {"max_steps": 0, "val_check_interval": 2},
    "trial": {"check_val_every_n_epoch": 3, "fast_dev_run": True},
    "no data": {"check_val_every_n_epoch": 3, "limit_val_batches": 0},
}


@pytest.mark.parametrize("case", NEVER)
def test_validation_that_never_comes(case: str) -> None:
    options, message = NEVER[case]
    with pytest.warns(PitfallWarning, match=f"must come due within the fit. Got .*{message}"):
        quiet(**{"max_epochs": 2, **options}).fit(Regression(), loader(), loader(8))


@pytest.mark.parametrize("case", IN_TIME)
def test_validation_that_comes_or_may_come(case: str) -> None:
    result = quiet(**{"max_epochs": 2, **IN_TIME[case]}).fit(Regression(), loader(), loader(8))
    assert result.warnings == ()


def test_windows_that_grow_by_epoch() -> None:
    """Eight updates: six of one batch, and two of three."""
    windows = GradientAccumulationScheduler({0: 1, 1: 3})
    trainer = quiet(max_epochs=-1, max_steps=8, check_val_every_n_epoch=2, callbacks=windows)
    assert trainer.fit(Regression(), loader(), loader(8)).warnings == ()
    assert "val/loss" in trainer.callback_metrics


def test_without_checks_nothing_is_said() -> None:
    trainer = quiet(max_epochs=1, check_val_every_n_epoch=3, checks="off")
    assert trainer.fit(Regression(), loader(), loader(8)).warnings == ()


class Two(Regression):
    """Two optimizers; the second one, of the bias, is slower."""

    frequency = 1

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return dict.fromkeys(("weight", "bias"), self.loss(batch))

    def configure_optimizers(self) -> Any:
        weight, bias = self.linear.weight, self.linear.bias
        slow = {"optimizer": mt.optim.SGD([bias], lr=0.01), "frequency": self.frequency}
        return {"weight": mt.optim.SGD([weight], lr=0.01), "bias": slow}


class Scheduled(Regression):
    """A schedule that moves now and then."""

    interval, frequency = "step", 1

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.SGD(self.parameters(), lr=0.01)
        schedule = mt.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        config = {"interval": self.interval, "frequency": self.frequency}
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, **config}}


TASKS: dict[str, tuple[type, dict[str, Any], str]] = {
    "optimizer": (Two, {"frequency": 13}, "Got frequency=13 of 'bias' in 12 updates"),
    "schedule by step": (Scheduled, {"frequency": 13}, "frequency=13 of ExponentialLR.* in 12 of"),
    "schedule by epoch": (
        Scheduled,
        {"frequency": 3, "interval": "epoch"},
        'of ExponentialLR with interval="epoch" in 2 of',
    ),
}


@pytest.mark.parametrize("case", TASKS)
def test_optimizers_and_schedules_that_never_come_due(case: str) -> None:
    kind, options, message = TASKS[case]
    with pytest.warns(PitfallWarning, match=f"within the fit. .*{message}"):
        quiet(max_epochs=2).fit(type("Bad", (kind,), options)(), loader())
    options = {**options, "frequency": options["frequency"] - 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quiet(max_epochs=2).fit(type("Good", (kind,), options)(), loader())
