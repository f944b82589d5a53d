"""Staged fine-tuning: what is frozen, when it thaws, at which rates, and exact resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from averaging_tasks import check_resumes
from scripted_tasks import Linear, Spy, fit

from minitorch import nn, optim
from minitorch.callbacks import BackboneFinetuning, BaseFinetuning
from minitorch.errors import ArgumentError, TrainerError


class Pretrained(Linear):
    """A backbone with normalisation and a head."""

    chooses = staticmethod(lambda task: filter(lambda p: p.requires_grad, task.parameters()))
    schedule: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Tanh())
        self.linear = nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        return self.linear(self.backbone(x))

    def configure_optimizers(self) -> Any:
        optimizer = optim.Adam(self.chooses(self), lr=0.1)
        if self.schedule is None:
            return optimizer
        return [optimizer], [self.schedule(optimizer)]


class Stages(BaseFinetuning):
    """The backbone thaws layer by layer."""

    def freeze_before_training(self, module: Any) -> None:
        self.freeze(module.backbone, train_bn=False)

    def finetune_function(self, module: Any, epoch: int, optimizer: Any) -> None:
        if epoch == 1:
            self.unfreeze_and_add_param_group(module.backbone[1], optimizer)
        if epoch == 3:
            self.unfreeze_and_add_param_group([module.backbone[0]], optimizer, lr=0.01)


def snapshot(trainer: Any) -> dict[str, np.ndarray]:
    state = trainer.module.state_dict()
    return {name: np.array(value.detach().numpy()) for name, value in state.items()}


def moved(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> list[str]:
    return [name for name in a if (a[name] != b[name]).any() and "tracked" not in name]


def test_each_stage_trains_what_has_thawed() -> None:
    ends = Spy("on_train_epoch_end", snapshot)
    groups = Spy("on_train_epoch_end", lambda t: [g["lr"] for g in t.optimizers[0].param_groups])
    task = Pretrained()
    start = {name: np.array(v.detach().numpy()) for name, v in task.state_dict().items()}
    fit(task, Stages(), ends, groups, max_epochs=4)
    head, norm = ["linear.weight", "linear.bias"], ["backbone.1.weight", "backbone.1.bias"]
    statistics = ["backbone.1.running_mean", "backbone.1.running_var"]
    first = ["backbone.0.weight", "backbone.0.bias"]
    assert sorted(moved(start, ends.seen[0])) == sorted(head)
    assert sorted(moved(ends.seen[0], ends.seen[1])) == sorted(head + norm + statistics)
    assert sorted(moved(ends.seen[2], ends.seen[3])) == sorted(head + norm + statistics + first)
    assert groups.seen == [[0.1], [0.1, 0.01], [0.1, 0.01], [0.1, 0.01, 0.01]]


BACKBONE: dict[str, tuple[dict[str, Any], list[float]]] = {
    "doubles": ({}, [0.01, 0.02, 0.04, 0.08, 0.1]),
    "beyond": ({"should_align": False}, [0.01, 0.02, 0.04, 0.08, 0.16]),
    "own rate": ({"backbone_initial_lr": 0.03, "lambda_func": lambda epoch: 1.0}, [0.03] * 5),
    "ratio": (
        {"backbone_initial_ratio_lr": 0.5, "lambda_func": lambda epoch: 0.5},
        [0.05, 0.025, 0.0125, 0.00625, 0.003125],
    ),
}


@pytest.mark.parametrize("case", BACKBONE)
def test_rates_of_the_backbone(case: str) -> None:
    options, rates = BACKBONE[case]
    seen = Spy("on_train_epoch_end", lambda t: [g["lr"] for g in t.optimizers[0].param_groups])
    fit(Pretrained(), BackboneFinetuning(1, **options), seen, max_epochs=6)
    assert seen.seen[0] == [0.1]
    assert [lr for _, lr in seen.seen[1:]] == pytest.approx(rates)


@pytest.mark.parametrize("train_bn", [True, False])
def test_normalisation_of_a_frozen_backbone(train_bn: bool) -> None:
    ends, task = Spy("on_train_epoch_end", snapshot), Pretrained()
    start = {name: np.array(v.detach().numpy()) for name, v in task.state_dict().items()}
    fit(task, BackboneFinetuning(5, train_bn=train_bn), ends, max_epochs=1)
    changed = moved(start, ends.seen[0])
    assert ("backbone.1.running_mean" in changed) is train_bn
    assert ("backbone.1.weight" in changed) is train_bn
    assert "backbone.0.weight" not in changed


def test_an_optimizer_of_the_head_alone_is_enough() -> None:
    class Head(Pretrained):
        chooses = staticmethod(lambda task: task.linear.parameters())

    ends = Spy("on_train_epoch_end", snapshot)
    fit(Head(), BackboneFinetuning(1), ends, max_epochs=2)
    changed = moved(ends.seen[0], ends.seen[1])
    assert {"backbone.0.weight", "backbone.1.weight", "linear.weight"} <= set(changed)


def test_parameters_that_the_optimizer_has_keep_their_group() -> None:
    class All(Pretrained):
        chooses = staticmethod(lambda task: task.parameters())

    groups = Spy("on_train_epoch_end", lambda t: len(t.optimizers[0].param_groups))
    ends = Spy("on_train_epoch_end", snapshot)
    with pytest.warns(UserWarning, match="Got 2 of 2 parameters that Adam has already"):
        fit(All(), BackboneFinetuning(1), groups, ends, max_epochs=2)
    assert groups.seen == [1, 1]
    assert "backbone.0.weight" in moved(*ends.seen)


SCHEDULES: dict[str, Any] = {
    "none": None,
    "step": staticmethod(lambda o: optim.lr_scheduler.StepLR(o, 2, 0.5)),
    "lambda": staticmethod(lambda o: optim.lr_scheduler.LambdaLR(o, lambda s: 1 / (1 + s))),
    "several": staticmethod(
        lambda o: optim.lr_scheduler.SequentialLR(
            o,
            [
                optim.lr_scheduler.ConstantLR(o, 0.5, 2),
                optim.lr_scheduler.ExponentialLR(o, 0.9),
            ],
            [2],
        )
    ),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("make", [Stages, lambda: BackboneFinetuning(1)])
def test_resumed_equals_uninterrupted(make: Any, schedule: str, tmp_path: Path) -> None:
    task = type("Task", (Pretrained,), {"schedule": SCHEDULES[schedule]})
    check_resumes(task, make, tmp_path, (2, 6, 14))


def test_a_schedule_moves_the_rates_of_groups_that_join() -> None:
    task = type("Task", (Pretrained,), {"schedule": SCHEDULES["lambda"]})()
    seen = Spy("on_train_epoch_end", lambda t: [g["lr"] for g in t.optimizers[0].param_groups])
    fit(task, Stages(), seen, max_epochs=3)
    # the schedule has moved ahead of the look: 0.1/2, 0.1/3, 0.1/4
    assert [rates[0] for rates in seen.seen] == pytest.approx([0.1, 0.05, 0.1 / 3])
    assert [rates[1] for rates in seen.seen[1:]] == pytest.approx([0.005, 0.01 / 3])


def test_helpers() -> None:
    block = nn.Sequential(nn.Linear(2, 2), nn.ModuleDict({"x": nn.BatchNorm1d(2)}))
    flat = BaseFinetuning.flatten_modules([block, [block[0]]])
    assert flat == [block[0], block[1]["x"]]
    BaseFinetuning.freeze(block, train_bn=True)
    assert not block[0].weight.requires_grad
    assert len(list(BaseFinetuning.filter_params(block, requires_grad=True))) == 2
    assert len(list(BaseFinetuning.filter_params(block, train_bn=False, requires_grad=True))) == 0
    BaseFinetuning.make_trainable(block)
    assert all(p.requires_grad for p in block.parameters())


class Named(Pretrained):
    """The backbone has an optimizer of its own, or none."""

    held = True

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return dict.fromkeys(self.trainer.named, self.loss(batch))

    def configure_optimizers(self) -> Any:
        extra = nn.Parameter(self.linear.bias.detach().clone())
        self.linear.bias = extra
        second = self.backbone.parameters() if self.held else [self.linear.bias]
        first = self.linear.parameters() if self.held else [self.linear.weight]
        return {"head": optim.SGD(first, lr=0.1), "other": optim.SGD(second, lr=0.01)}


def test_a_backbone_with_an_optimizer_of_its_own_thaws_there() -> None:
    groups = Spy(
        "on_train_epoch_end",
        lambda t: [[(g["lr"], len(g["params"])) for g in o.param_groups] for o in t.optimizers],
    )
    ends = Spy("on_train_epoch_end", snapshot)
    result = fit(Named(), BackboneFinetuning(1, train_bn=False), groups, ends, max_epochs=3)
    assert groups.seen == [[[(0.1, 2)], [(0.01, 4)]]] * 3
    changed = moved(ends.seen[0], ends.seen[1])
    assert ("backbone.0.weight" in changed, "backbone.1.weight" in changed) == (True, False)
    assert result.warnings == ()


def _thaw_in_all(self: Any, module: Any, epoch: int, optimizer: Any) -> None:
    self.unfreeze_and_add_param_group(module.backbone, optimizer)


WRONG: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "no backbone": (Linear, lambda: BackboneFinetuning(1), ArgumentError, "attribute `backbone`"),
    "epoch": (
        Pretrained,
        lambda: BackboneFinetuning(-1),
        ArgumentError,
        "unfreeze_backbone_at_epoch must be an integer ≥ 0. Got -1",
    ),
    "no freeze": (Pretrained, BaseFinetuning, NotImplementedError, "freeze_before_training"),
    "no stages": (
        Pretrained,
        type("Half", (BaseFinetuning,), {"freeze_before_training": lambda self, module: None}),
        NotImplementedError,
        "finetune_function",
    ),
    "no optimizer of several": (
        type("Without", (Named,), {"held": False}),
        lambda: BackboneFinetuning(0),
        TrainerError,
        "with several optimizers one of them holds the backbone. Got 2 without it",
    ),
    "two optimizers": (
        Named,
        type("Both", (Stages,), {"finetune_function": _thaw_in_all}),
        TrainerError,
        "each parameter belongs to one optimizer. Got backbone.0.weight",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str) -> None:
    task, make, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        fit(task(), make(), max_epochs=1)


def test_both_rates_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    fit(Pretrained(), BackboneFinetuning(0, verbose=True, rounding=3), max_epochs=2)
    assert capsys.readouterr().out.splitlines() == [
        "BackboneFinetuning: rate 0.1, of the backbone 0.01",
        "BackboneFinetuning: rate 0.1, of the backbone 0.02",
    ]
