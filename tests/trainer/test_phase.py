"""Train and eval mode, grad mode, freezing: scopes that the Trainer owns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, fit, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Batches
from minitorch.trainer import freeze, unfreeze
from minitorch.trainer.phase import is_frozen


class Net(Regression):
    """Dropout and batch norm; keeps the modes that it saw."""

    def __init__(self) -> None:
        super().__init__(dropout=0.5)
        self.norm = nn.BatchNorm1d(3)
        self.modes: dict[str, set[Any]] = {}

    def see(self, where: str) -> None:
        flags = tuple(part.training for part in self.modules())
        self.modes.setdefault(where, set()).add((flags, mt.is_grad_enabled()))

    def forward(self, x: Any) -> Any:
        return self.linear(self.dropout(self.norm(x)))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.see("train")
        return self.loss(batch)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.see("validation")
        self.log("val/loss", self.loss(batch))


ON, OFF = ((True,) * 4, True), ((False,) * 4, False)


def test_modes_of_a_fit_that_starts_in_eval_mode() -> None:
    task = Net()
    task.eval()
    fit(task, loader(), loader(4), max_epochs=2, val_check_interval=2)
    assert task.modes == {"train": {ON}, "validation": {OFF}}


def test_evaluation_gives_every_submodule_its_mode_back() -> None:
    task = Net()
    task.train()
    task.norm.eval()
    quiet().validate(task, loader(4), verbose=False)
    assert [part.training for part in task.modules()] == [True, True, True, False]
    assert task.modes == {"validation": {OFF}}


def test_modes_come_back_after_an_exception() -> None:
    class Broken(Net):
        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            raise ZeroDivisionError

    task = Broken()
    with pytest.raises(ZeroDivisionError):
        quiet().validate(task, loader(4))
    assert all(part.training for part in task.modules())
    assert mt.is_grad_enabled()


def test_frozen_parts_keep_weights_statistics_and_mode() -> None:
    task = Net()
    freeze(task.norm)
    before = weights(task)
    fit(task, loader(), loader(4), max_epochs=2)
    after = weights(task)
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == {"linear.weight", "linear.bias"}
    assert task.modes["train"] == {((True, True, True, False), True)}
    assert is_frozen(task.norm)
    unfreeze(task.norm)
    assert not is_frozen(task.norm)
    assert task.norm.training
    assert task.norm.weight.requires_grad


def test_freeze_of_the_whole_task() -> None:
    task = Net()
    task.freeze()
    assert not any(p.requires_grad for p in task.parameters())
    assert not any(part.training for part in task.modules())
    task.unfreeze()
    assert all(p.requires_grad for p in task.parameters())


def test_outer_no_grad_does_not_reach_training() -> None:
    task = Net()
    with mt.no_grad():
        fit(task, max_epochs=1)
    assert task.modes == {"train": {ON}}


@pytest.mark.parametrize(("option", "inference"), [(True, True), (False, False)])
def test_inference_mode(option: bool, inference: bool) -> None:
    outputs: list[Any] = []

    class Task(Net):
        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            outputs.append(self(batch[0]))

    quiet(inference_mode=option).validate(Task(), loader(4), verbose=False)
    assert not outputs[0].requires_grad


def test_validation_does_not_disturb_training() -> None:
    """Weights, data order and dropout are the same whether validation runs or not."""
    finals = []
    for options in ({}, {"limit_val_batches": 0}, {"val_check_interval": Batches(1)}):
        mt.manual_seed(11)

        class Noisy(Net):
            def validation_step(self, batch: Any, batch_idx: int) -> Any:
                mt.rand(7)
                mt.nn.functional.dropout(batch[0], 0.5, True)

        task = Noisy()
        data = loader(8, shuffle=True)
        fit(task, loader(), data, max_epochs=2, **options)
        finals.append(weights(task))
    for other in finals[1:]:
        for name, value in finals[0].items():
            np.testing.assert_array_equal(value, other[name])


def test_evaluation_draws_are_the_same_at_the_same_step() -> None:
    draws: list[Any] = []

    class Noisy(Net):
        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            if not self.trainer.sanity_checking:
                draws.append(mt.rand(1).item())

    for sanity in (0, 2):
        mt.manual_seed(11)
        fit(Noisy(), loader(), loader(4), max_epochs=2, num_sanity_val_steps=sanity)
    assert draws[:2] == draws[2:]
    assert draws[0] != draws[1]
