"""Callbacks that declare what they read and write: conflicts are found before training."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scripted_tasks import Linear, fit, quiet

from minitorch import optim
from minitorch.callbacks import (
    Callback,
    History,
    LearningRateMonitor,
    LearningRateScheduler,
    ModelPruning,
    Order,
    ReduceLROnPlateau,
    StochasticWeightAveraging,
    WeightAveraging,
    conflicts,
)
from minitorch.errors import ArgumentError, TrainerError


class Scheduled(Linear):
    def configure_optimizers(self) -> Any:
        optimizer = super().configure_optimizers()
        return [optimizer], [optim.lr_scheduler.StepLR(optimizer, 1)]


class Base(Callback):
    def on_train_batch_end(self, *args: Any) -> None:
        pass

    def on_train_epoch_end(self, *args: Any) -> None:
        pass


def made(name: str, **attributes: Any) -> Any:
    return type(name, (Base,), attributes)()


def halves() -> Any:
    return LearningRateScheduler(lambda epoch, lr: lr)


def plateau() -> Any:
    return ReduceLROnPlateau("val/loss", mode="min")


AT = "on_train_batch_end"
END = "on_train_epoch_end"
CONFLICTS: dict[str, tuple[Any, list[Any], str]] = {
    "two rates": (
        Linear,
        [halves, plateau],
        "one callback writes the learning rate, which stays.*Got LearningRateScheduler and "
        "ReduceLROnPlateau. Leave one of them out; if both are meant, set writes = {}",
    ),
    "rate and schedule": (
        Scheduled,
        [plateau],
        "one callback or schedule writes the learning rate in on_train_epoch_end. Got Schedules "
        "and ReduceLROnPlateau",
    ),
    "rate and schedule elsewhere": (Scheduled, [halves], "Got .*LearningRateScheduler"),
    "two writers": (
        Linear,
        [lambda: made("A", writes={"weights": AT}), lambda: made("B", writes={"weights": AT})],
        "one callback writes the weights in on_train_batch_end. Got A and B",
    ),
    "own things": (
        Linear,
        [
            lambda: made("A", writes={"masks": (AT, END)}),
            lambda: made("B", writes={"masks": END}),
        ],
        "one callback writes the masks in on_train_epoch_end. Got A and B",
    ),
    "metrics too early": (
        Linear,
        [lambda: made("A", reads={"metrics": END})],
        r"who reads the metrics comes after who writes them. Got A \(MEASURE\) before MetricLog "
        r"\(REPORT\) in on_train_epoch_end. Give A order = Order.REPORT or a later one\.",
    ),
    "listed too early": (
        Linear,
        [lambda: made("A", reads={"masks": AT}), lambda: made("B", writes={"masks": AT})],
        r"Got A \(MEASURE\) before B.*or list it after the other\.",
    ),
}


@pytest.mark.parametrize("case", CONFLICTS)
def test_conflicts_are_errors_with_both_names(case: str) -> None:
    task, callbacks, message = CONFLICTS[case]
    with pytest.raises(TrainerError, match=message):
        fit(task(), *(make() for make in callbacks), max_epochs=1)


FINE: dict[str, tuple[Any, list[Any]]] = {
    "schedule alone": (Scheduled, [LearningRateMonitor, History]),
    "swa replaces the schedule": (Scheduled, [lambda: StochasticWeightAveraging(0.1)]),
    "other events": (
        Linear,
        [lambda: made("A", writes={"masks": AT}), lambda: made("B", writes={"masks": END})],
    ),
    "everybody may stop": (
        Linear,
        [lambda: made("A", writes={"stop": AT}), lambda: made("B", writes={"stop": AT})],
    ),
    "listed after": (
        Linear,
        [lambda: made("B", writes={"masks": AT}), lambda: made("A", reads={"masks": AT})],
    ),
    "final metrics": (Linear, [lambda: made("A", reads={"metrics": END}, order=Order.REPORT)]),
    "an event that it does not use": (
        Linear,
        [
            lambda: made("A", writes={"masks": "on_fit_end"}),
            lambda: made("B", writes={"masks": "on_fit_end"}),
        ],
    ),
    "averages": (Linear, [WeightAveraging, halves]),
    "pruning": (Linear, [lambda: ModelPruning("l1_unstructured"), plateau]),
}


@pytest.mark.parametrize("case", FINE)
def test_what_fits_together_runs(case: str) -> None:
    task, callbacks = FINE[case]
    fit(task(), *(make() for make in callbacks), max_epochs=1)


def test_what_is_meant_is_said_at_the_object() -> None:
    one, two = halves(), plateau()
    two.writes = {}
    fit(Scheduled(), made("A"), two, max_epochs=1)
    fit(Linear(), one, two, max_epochs=1)


def test_declarations_name_events() -> None:
    with pytest.raises(ArgumentError, match=r"A: reads names events. Got 'on_epoch' for 'loss'"):
        fit(Linear(), made("A", reads={"loss": "on_epoch"}), max_epochs=1)


def test_the_core_is_free_of_conflicts() -> None:
    for options in ({}, {"precision": "16-mixed", "accumulate_grad_batches": 2}):
        trainer = quiet(max_epochs=1, gradient_clip_val=1.0, **options)
        conflicts.check(trainer.callbacks)


def test_the_order_tells_what_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    trainer = quiet(halves(), History())
    trainer.print_order()
    out = capsys.readouterr().out
    assert "LearningRateScheduler (PREPARE, writes learning rate)" in out
    assert re.search(r"MetricLog \(REPORT, writes metrics\) → .*History \(DECIDE, reads met", out)
