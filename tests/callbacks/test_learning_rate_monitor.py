"""LearningRateMonitor: names, intervals and values."""

from __future__ import annotations

from typing import Any

import pytest
from scripted_tasks import Linear, fit

from minitorch import nn, optim
from minitorch.callbacks import LearningRateMonitor
from minitorch.errors import ArgumentError


class Task(Linear):
    """A task with a given optimizer and schedule."""

    def __init__(self, make: Any) -> None:
        super().__init__()
        self.other = nn.Linear(1, 1)
        self.make = make

    def forward(self, x: Any) -> Any:
        return self.other(self.linear(x))

    def configure_optimizers(self) -> Any:
        return self.make(self)


def sgd(task: Task, **options: Any) -> Any:
    return optim.SGD(task.parameters(), lr=0.1, **options)


def halving(optimizer: Any, **config: Any) -> Any:
    schedule = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, **config}}


class Bare:
    """A schedule that does not tell its optimizer."""

    def step(self) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        return {}


def groups(task: Task, *names: str) -> Any:
    parts = [task.linear.parameters(), task.other.parameters()]
    found = [{"params": list(p), "lr": lr} for p, lr in zip(parts, (0.1, 0.2), strict=True)]
    for group, name in zip(found, names, strict=False):
        group["name"] = name
    return optim.Adam(found, betas=(0.8, 0.99), weight_decay=0.5)


STEPS = [1, 2, 3, 4, 5, 6, 7, 8]
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, list[tuple[int, float]]]]] = {
    "epochs": (sgd, {}, {"lr-SGD": [(4, 0.1), (8, 0.1)]}),
    "steps": (sgd, {"logging_interval": "step"}, {"lr-SGD": [(s, 0.1) for s in STEPS]}),
    "epoch schedule": (lambda t: halving(sgd(t)), {}, {"lr-SGD": [(4, 0.1), (8, 0.05)]}),
    "step schedule": (
        lambda t: halving(sgd(t), interval="step"),
        {},
        {"lr-SGD": [(s, 0.1 * 0.5 ** (s - 1)) for s in STEPS]},
    ),
    "step schedule by epochs": (
        lambda t: halving(sgd(t), interval="step"),
        {"logging_interval": "epoch"},
        {"lr-SGD": [(4, 0.1), (8, 0.1 * 0.5**4)]},
    ),
    "schedule without optimizer": (
        lambda t: {"optimizer": sgd(t), "lr_scheduler": {"scheduler": Bare(), "interval": "step"}},
        {},
        {"lr-SGD": [(s, 0.1) for s in STEPS]},
    ),
    "name of the schedule": (lambda t: halving(sgd(t), name="rate"), {}, {"rate": [(4, 0.1)]}),
    "groups": (groups, {}, {"lr-Adam/pg1": [(4, 0.1)], "lr-Adam/pg2": [(4, 0.2)]}),
    "named groups": (
        lambda t: groups(t, "body"),
        {},
        {"lr-Adam/body": [(4, 0.1)], "lr-Adam/pg2": [(4, 0.2)]},
    ),
    "momentum": (
        lambda t: sgd(t, momentum=0.5),
        {"log_momentum": True, "log_weight_decay": True},
        {"lr-SGD": [(4, 0.1)], "lr-SGD-momentum": [(4, 0.5)], "lr-SGD-weight_decay": [(4, 0)]},
    ),
    "betas": (
        groups,
        {"log_momentum": True, "log_weight_decay": True},
        {"lr-Adam/pg2-momentum": [(4, 0.8)], "lr-Adam/pg1-weight_decay": [(4, 0.5)]},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_logged(case: str) -> None:
    make, arguments, expected = CASES[case]
    epochs = 2 if any(len(points) > 1 for points in expected.values()) else 1
    watch = LearningRateMonitor(**arguments)
    history = fit(Task(make), watch, max_epochs=epochs, log_every_n_steps=1).history
    for name, points in expected.items():
        assert [step for step, _ in history[name]] == [step for step, _ in points]
        assert [value for _, value in history[name]] == pytest.approx([v for _, v in points])
    logged = {name for name in history if not name.startswith(("val/", "train/"))}
    assert expected.keys() <= logged
    if case not in ("betas",):
        assert logged == expected.keys()


def test_several_optimizers_of_one_class() -> None:
    class Two(Task):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            for optimizer in self.optimizers():
                optimizer.zero_grad()
            self.manual_backward(self.loss(batch))
            for optimizer in self.optimizers():
                optimizer.step()

    def make(task: Task) -> Any:
        return [optim.SGD(p.parameters(), lr=lr) for p, lr in ((task.linear, 1), (task.other, 2))]

    history = fit(Two(make), LearningRateMonitor(), max_epochs=1).history
    assert history["lr-SGD"] == [(4, 1.0)]
    assert history["lr-SGD-1"] == [(4, 2.0)]


def test_wrong_interval() -> None:
    message = 'LearningRateMonitor: logging_interval must be "step", "epoch" or None. Got \'batch\''
    with pytest.raises(ArgumentError, match=message):
        fit(Linear(), LearningRateMonitor("batch"), max_epochs=1)
