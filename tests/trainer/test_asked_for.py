"""Callbacks that arguments of the Trainer add, and that nothing else does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from toy_tasks import Regression, loader

from minitorch.callbacks import Callback, ModelCheckpoint, ModelSummary, Timer, TQDMProgressBar
from minitorch.callbacks.core import CORE
from minitorch.trainer import Trainer

ADDED: dict[str, tuple[dict[str, Any], list[type]]] = {
    "default": ({}, [TQDMProgressBar]),
    "nothing": ({"enable_progress_bar": False}, []),
    "summary": (
        {"enable_model_summary": True, "enable_progress_bar": False},
        [ModelSummary],
    ),
    "checkpoint": (
        {"enable_checkpointing": True, "enable_progress_bar": False},
        [ModelCheckpoint],
    ),
    "time": (
        {"max_time": timedelta(hours=1), "enable_progress_bar": False},
        [Timer],
    ),
    "there already": ({"enable_progress_bar": True, "callbacks": TQDMProgressBar()}, []),
}


@pytest.mark.parametrize("case", ADDED)
def test_what_is_added(case: str, tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    options, kinds = ADDED[case]
    trainer = Trainer(max_epochs=1, default_root_dir=tmp_path, **options)
    before = list(trainer.callbacks)
    trainer.fit(Regression(), loader(8))
    added = [callback for callback in trainer.callbacks if callback not in before]
    assert [type(callback) for callback in added] == kinds
    if kinds != [ModelCheckpoint]:
        assert list(tmp_path.iterdir()) == []  # nothing is written that nobody asked for


def test_nothing_is_added_twice(capsys: pytest.CaptureFixture[str]) -> None:
    trainer, task = Trainer(max_epochs=1), Regression()
    trainer.fit(task, loader(8))
    count = len(trainer.callbacks)
    trainer.test(task, loader(8))
    assert len(trainer.callbacks) == count


def test_logger_true_is_tensorboard_in_the_root_dir(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Trainer(max_epochs=1, logger=True, default_root_dir=tmp_path).fit(Regression(), loader(8))
    assert list(tmp_path.rglob("events.out.tfevents.*"))


def test_callbacks_of_the_module_join_and_replace_their_kind() -> None:
    class Mine(Callback):
        def __init__(self, name: str) -> None:
            self.name = name

    class Task(Regression):
        def configure_callbacks(self) -> Any:
            return Mine("module")

    trainer = Trainer(max_epochs=1, callbacks=[Mine("trainer")], enable_progress_bar=False)
    trainer.fit(Task(), loader(8))
    assert [cb.name for cb in trainer.callbacks if isinstance(cb, Mine)] == ["module"]


def test_print_of_a_module(capsys: pytest.CaptureFixture[str]) -> None:
    class Task(Regression):
        def on_train_start(self) -> None:
            self.print("inside", 1)

    task = Task()
    task.print("outside")
    Trainer(max_epochs=1, enable_progress_bar=False).fit(task, loader(8))
    assert capsys.readouterr().out == "outside\ninside 1\n"


def test_flags_that_tell_the_phase() -> None:
    seen: dict[str, set[str]] = {}
    names = ("training", "validating", "sanity_checking", "testing", "predicting", "evaluating")

    class Look(Callback):
        def note(self, trainer: Any, event: str) -> None:
            seen.setdefault(event, set()).update(n for n in names if getattr(trainer, n))

        def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
            self.note(trainer, "train")

        def on_validation_batch_end(self, trainer: Any, *args: Any) -> None:
            self.note(trainer, "sanity" if trainer.sanity_checking else "validation")

        def on_test_batch_end(self, trainer: Any, *args: Any) -> None:
            self.note(trainer, "test")

        def on_predict_batch_end(self, trainer: Any, *args: Any) -> None:
            self.note(trainer, "predict")

    trainer = Trainer(max_epochs=1, callbacks=Look(), enable_progress_bar=False)
    task = Regression()
    trainer.fit(task, loader(8), loader(4))
    trainer.test(task, loader(4), verbose=False)
    trainer.predict(task, [loader(4).dataset[:4][0]])
    assert seen == {
        "sanity": {"sanity_checking", "evaluating"},
        "train": {"training"},
        "validation": {"validating", "evaluating"},
        "test": {"testing", "evaluating"},
        "predict": {"predicting"},
    }


@pytest.mark.parametrize("kind", CORE)
def test_every_core_callback_can_be_replaced(kind: type[Callback]) -> None:
    class Own(kind):  # type: ignore[misc,valid-type]
        """A subclass of the kind."""

    own = Own()
    options: dict[str, Any] = {"enable_progress_bar": False, "precision": "bf16-mixed"}
    trainer = Trainer(max_epochs=1, callbacks=own, accumulate_grad_batches=2, **options)
    assert [cb for cb in trainer.callbacks if isinstance(cb, kind)] == [own]
    assert trainer.fit(Regression(), loader(12), loader(4)).global_step == 2


def test_order_can_be_printed_before_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    Trainer(enable_progress_bar=False).print_order()
    assert "transform_batch           DevicePlacement (PREPARE)" in capsys.readouterr().out


def test_attributes_do_not_make_a_summary_or_a_bar() -> None:
    class Other(Callback):
        max_depth = refresh_rate = 3

    trainer = Trainer(max_epochs=0, enable_model_summary=True, callbacks=Other())
    trainer.fit(Regression(), loader(4))
    kinds = {type(callback) for callback in trainer.callbacks}
    assert {ModelSummary, TQDMProgressBar} <= kinds
