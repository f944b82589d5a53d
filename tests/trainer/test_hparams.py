"""save_hyperparameters, load_from_checkpoint, and what a checkpoint refuses to hold."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, fit, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.errors import ArgumentError, CheckpointError
from minitorch.trainer import TaskModule


class Base(TaskModule):
    """Fits the toy data whatever its arguments are."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return ((self.linear(batch[0]) - batch[1]) ** 2).mean()

    def configure_optimizers(self) -> Any:
        return mt.optim.SGD(self.parameters(), lr=0.01)


class All(Base):
    def __init__(self, width: int, lr: float = 0.1, *, act: str = "relu", **more: Any) -> None:
        super().__init__()
        self.save_hyperparameters()


class Named(Base):
    def __init__(self, width: int, lr: float = 0.1) -> None:
        super().__init__()
        self.save_hyperparameters("lr")


class Ignoring(Base):
    def __init__(self, width: int, lr: float = 0.1, loss: Any = print) -> None:
        super().__init__()
        self.save_hyperparameters(ignore=["loss"])


class Derived(All):
    def __init__(self, depth: int = 2) -> None:
        super().__init__(8, lr=0.5)


@dataclasses.dataclass
class Config:
    width: int = 4
    lr: float = 0.3


class Whole(Base):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.save_hyperparameters(config)


SAVED: dict[str, tuple[Any, dict[str, Any]]] = {
    "all": (lambda: All(3, act="gelu"), {"width": 3, "lr": 0.1, "act": "gelu"}),
    "keywords": (lambda: All(3, depth=7), {"width": 3, "lr": 0.1, "act": "relu", "depth": 7}),
    "named": (lambda: Named(3), {"lr": 0.1}),
    "ignored": (lambda: Ignoring(3), {"width": 3, "lr": 0.1}),
    "derived": (lambda: Derived(), {"width": 8, "lr": 0.5, "act": "relu", "depth": 2}),
    "dict": (lambda: Whole({"a": 1}), {"a": 1}),
    "data class": (lambda: Whole(Config()), {"width": 4, "lr": 0.3}),
    "namespace": (lambda: Whole(argparse.Namespace(a=1)), {"a": 1}),
}


@pytest.mark.parametrize("case", SAVED)
def test_what_is_saved_and_loaded_again(case: str, tmp_path: Path) -> None:
    make, expected = SAVED[case]
    task = make()
    assert dict(task.hparams) == expected
    trainer = quiet(max_epochs=1)
    trainer.fit(task, loader(8))
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    overrides = {"width": 1} if case == "named" else {}
    again = type(task).load_from_checkpoint(tmp_path / "x.ckpt", **overrides)
    kept = {k: v for k, v in expected.items() if case != "derived" or k == "depth"}
    assert {k: again.hparams[k] for k in kept} == kept
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, weights(again)[name])


def test_overrides_win(tmp_path: Path) -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(All(3), loader(8))
    trainer.save_checkpoint(tmp_path / "x.ckpt", weights_only=True)
    assert All.load_from_checkpoint(tmp_path / "x.ckpt", lr=9.0).hparams.lr == 9.0


def test_missing_arguments_are_named(tmp_path: Path) -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(Named(3), loader(8))
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    with pytest.raises(CheckpointError, match=r"Named is built from.*\(lr\) and failed.*width"):
        Named.load_from_checkpoint(tmp_path / "x.ckpt")


def test_hparams_are_attributes_and_entries() -> None:
    hparams = All(3).hparams
    hparams.lr = 0.7
    hparams["new"] = 1
    assert (hparams["lr"], hparams.new, len(hparams)) == (0.7, 1, 4)
    del hparams["new"]
    assert "new" not in hparams
    assert repr(hparams) == "HParams({'width': 3, 'lr': 0.7, 'act': 'relu'})"
    with pytest.raises(AttributeError, match=r"there is no 'widht'.*Did you mean width\?"):
        _ = hparams.widht


WRONG: dict[str, tuple[tuple[Any, ...], str]] = {
    "name": (("widht",), r"names must be arguments of __init__. Got 'widht'.*Did you mean 'width'"),
    "number": ((3,), r"give a dict, a dataclass or a namespace. Got int"),
    "two dicts": (({}, {}), r"one dict, dataclass or namespace. Got 2 arguments"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_calls(case: str) -> None:
    args, message = WRONG[case]

    class Task(Base):
        def __init__(self, width: int = 1) -> None:
            super().__init__()
            self.save_hyperparameters(*args)

    with pytest.raises(ArgumentError, match=message):
        Task()


def test_values_that_no_file_can_hold_are_refused_by_name(tmp_path: Path) -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(All(3, loss=print), loader(8))
    with pytest.raises(CheckpointError, match=r"hyper_parameters.loss"):
        trainer.save_checkpoint(tmp_path / "x.ckpt")
    assert not (tmp_path / "x.ckpt").exists()


def test_state_of_a_task_is_its_weights_only() -> None:
    task = Regression()
    task.example_input_array = mt.zeros(2, 3)
    fit(task, max_epochs=1)
    assert list(task.state_dict()) == ["linear.weight", "linear.bias"]


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_leave_the_trainer_behind(clone: Any) -> None:
    task = Regression(lr=0.3)
    trainer = quiet(max_epochs=1)
    trainer.fit(task, loader())
    twin = clone(task)
    assert twin.hparams.lr == 0.3
    assert task.trainer is trainer
    assert twin.global_step == 0
    assert twin.loggers == []


def test_checkpoint_hooks(tmp_path: Path) -> None:
    class Task(Regression):
        extra = 0

        def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
            checkpoint["mine"] = {"extra": self.extra}

        def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
            self.extra = checkpoint["mine"]["extra"]

    task = Task()
    task.extra = 5
    trainer = quiet(max_epochs=1)
    trainer.fit(task, loader())
    trainer.save_checkpoint(tmp_path / "deep" / "x.ckpt")
    assert Task.load_from_checkpoint(tmp_path / "deep" / "x.ckpt").extra == 5
    other = Task()
    quiet(max_epochs=2).fit(other, loader(), ckpt_path=tmp_path / "deep" / "x.ckpt")
    assert other.extra == 5


def test_two_callbacks_with_one_state_key(tmp_path: Path) -> None:
    from minitorch.callbacks import Callback

    class Keeper(Callback):
        def state_dict(self) -> dict[str, Any]:
            return {"x": 1}

    trainer = quiet(max_epochs=1, callbacks=[Keeper(), Keeper()])
    trainer.fit(Regression(), loader())
    with pytest.raises(CheckpointError, match=r"Got two with state_key=.*Keeper.*Override"):
        trainer.save_checkpoint(tmp_path / "x.ckpt")


@pytest.mark.parametrize("name", ["keys", "items", "update", "_values", "get"])
def test_arguments_named_like_methods(name: str) -> None:
    from minitorch.trainer.hparams import HParams

    values = HParams({name: 1, "lr": 0.1})
    assert values[name] == 1
    assert sorted(values.keys()) == sorted([name, "lr"])
    assert dict(values) == {name: 1, "lr": 0.1}
    values.update({"lr": 0.2})
    values.depth = 3
    assert (values.lr, values["depth"]) == (0.2, 3)
    del values.depth
    for copied in (copy.deepcopy(values), pickle.loads(pickle.dumps(values))):
        assert dict(copied) == {name: 1, "lr": 0.2}


def test_values_that_no_file_can_hold_are_found_before_training(tmp_path: Path) -> None:
    from minitorch.callbacks import ModelCheckpoint

    class Task(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.save_hyperparameters({"thing": object()})

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            raise AssertionError("too late")

    with pytest.raises(CheckpointError, match=r"hyper_parameters.*thing"):
        fit(Task(), loader(8), max_epochs=1, callbacks=ModelCheckpoint(tmp_path))
    with pytest.raises(AssertionError, match="too late"):  # nothing will be saved
        fit(Task(), loader(8), max_epochs=1)


def test_files_of_others_are_no_checkpoints(tmp_path: Path) -> None:
    mt.save({"weights": mt.ones(2)}, tmp_path / "other.mt")
    with pytest.raises(CheckpointError, match=r"was not written by a Trainer"):
        Regression.load_from_checkpoint(tmp_path / "other.mt")


def test_models_that_are_configured_late_are_loaded(tmp_path: Path) -> None:
    class Late(Regression):
        def configure_model(self) -> None:
            if not hasattr(self, "late"):
                self.late = mt.nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            return self.late(super().forward(x))

    task = Late()
    trainer = quiet(max_epochs=1)
    trainer.fit(task, loader(8))
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    loaded = Late.load_from_checkpoint(tmp_path / "x.ckpt")
    np.testing.assert_array_equal(loaded.late.weight.detach(), task.late.weight.detach())


def test_states_without_a_callback_are_named(tmp_path: Path) -> None:
    from minitorch.callbacks import EarlyStopping

    trainer = quiet(max_epochs=1, callbacks=EarlyStopping("val/loss", mode="min"))
    trainer.fit(Regression(), loader(8), loader(4))
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    with pytest.warns(UserWarning, match=r"Got none for EarlyStopping\(.*\). Pass the same"):
        quiet(max_epochs=2).fit(Regression(), loader(8), loader(4), ckpt_path=tmp_path / "x.ckpt")
