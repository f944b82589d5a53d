"""Several runs of one Trainer: none takes what belongs to another one."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from toy_tasks import Regression, arrays, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import Callback, EarlyStopping, ModelCheckpoint, Order
from minitorch.callbacks.core import FiniteGradients, GradientClipping
from minitorch.errors import TrainerError


def ctrl_c(*args: Any) -> None:
    os.kill(os.getpid(), signal.SIGINT)


class Press(Callback):
    """Presses Ctrl-C in a batch of one stage."""

    def __init__(self, stage: str) -> None:
        setattr(self, f"on_{stage}_batch_end", ctrl_c)
        self.heard: list[str] = []

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.heard.append(type(exception).__name__)


STAGES = {"validate": "validation", "test": "test", "predict": "predict"}


def evaluate(trainer: Any, stage: str, task: Any) -> Any:
    options = {} if stage == "predict" else {"verbose": False}
    data = arrays(10)[0] if stage == "predict" else loader(8)
    return getattr(trainer, stage)(task, data, **options)


@pytest.mark.parametrize("stage", STAGES)
def test_evaluation_after_an_interrupted_fit_is_complete(stage: str) -> None:
    trainer, task = quiet(max_epochs=2, callbacks=Press("train")), Regression()
    assert trainer.fit(task, loader(), loader(4)).status == "interrupted"
    assert evaluate(trainer, stage, task) is not None
    assert not trainer.interrupted
    found = evaluate(trainer, stage, task)
    assert len(found) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_interrupted_evaluation_returns_nothing(stage: str) -> None:
    press = Press(STAGES[stage])
    trainer = quiet(callbacks=press)
    with pytest.raises(KeyboardInterrupt):
        evaluate(trainer, stage, Regression())
    assert press.heard == ["KeyboardInterrupt"]


@pytest.mark.parametrize("stage", ["validate", "test", "fit"])
def test_a_run_inside_of_a_run_is_refused(stage: str) -> None:
    class Nested(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            getattr(trainer, stage)(module, loader(4))

    message = rf"Trainer.{stage}: a run is going on \(fit\).*Use another Trainer, or val_check_int"
    trainer = quiet(max_epochs=1, callbacks=Nested())
    with pytest.raises(TrainerError, match=message):
        trainer.fit(Regression(), loader())
    assert trainer.test(Regression(), loader(4), verbose=False)


@pytest.mark.parametrize("how", ["object", "best", "last"])
def test_canonical_script_under_fast_dev_run(how: str, tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min")
    trainer, task = quiet(max_epochs=3, fast_dev_run=True, callbacks=keep), Regression()
    result = trainer.fit(task, loader(), loader(4))
    assert result.best is task
    assert result.last is task
    assert "best" not in str(result)
    if how == "object":
        found = trainer.test(result.best, loader(4), verbose=False)
    else:
        found = trainer.test(dataloaders=loader(4), ckpt_path=how, verbose=False)
    assert found[0].keys() == {"test/loss"}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [GradientClipping, FiniteGradients])
def test_fast_dev_run_keeps_core_concerns(kind: Any) -> None:
    seen: list[str] = []

    class Own(kind):  # type: ignore[misc]
        def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
            seen.append("core")

        def listens(self, event: str) -> bool:
            return event == "on_before_optimizer_step"

    class Decider(Callback):
        order = Order.DECIDE

        def on_train_batch_end(self, *args: Any) -> None:
            seen.append("decider")

    fit(Regression(), fast_dev_run=True, callbacks=[Own(), Decider()])
    assert seen == ["core"]


def test_callbacks_of_the_module_are_made_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Task(Regression):
        def configure_callbacks(self) -> Any:
            return [ModelCheckpoint(tmp_path / "own", monitor="val/loss", mode="min")]

    trainer = quiet(max_epochs=1, callbacks=ModelCheckpoint(tmp_path / "given"))
    task = Task()
    trainer.fit(task, loader(), loader(4))
    keeper = trainer.checkpoint_callback
    assert (
        capsys.readouterr().out
        == "Trainer: configure_callbacks of Task replaces ModelCheckpoint.\n"
    )
    for module in (task, Task()):  # another module brings its own
        trainer.test(module, loader(4), ckpt_path="best", verbose=False)
        assert (trainer.checkpoint_callback is keeper) == (module is task)


class Constant(Regression):
    """Logs one value under one name in every evaluation."""

    def __init__(self, name: str, value: float) -> None:
        super().__init__()
        self.name, self.value = name, value

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log(self.name, self.value)

    test_step = validation_step


def test_evaluations_do_not_mix() -> None:
    trainer = quiet(max_epochs=1)
    assert trainer.test(Constant("a", 1.0), loader(4), verbose=False) == [{"a": 1.0}]
    assert trainer.test(Constant("b", 2.0), loader(4), verbose=False) == [{"b": 2.0}]
    assert {k: float(v) for k, v in trainer.callback_metrics.items()} == {"b": 2.0}


def test_validation_before_a_fit_is_no_part_of_it() -> None:
    stopping = EarlyStopping("x", mode="min", patience=5)
    trainer, task = quiet(max_epochs=2, callbacks=stopping), Constant("x", -5.0)
    trainer.validate(task, loader(4), verbose=False)
    task.value = 3.0
    result = trainer.fit(task, loader(), loader(4))
    assert result.history["x"] == [(6, 3.0), (12, 3.0)]
    assert float(stopping.best_score) == 3.0


def test_evaluation_leaves_the_metrics_of_a_fit_for_its_checkpoint(tmp_path: Path) -> None:
    trees = []
    for evaluated in (False, True):
        mt.manual_seed(0)
        trainer, task = quiet(max_steps=3), Regression()
        trainer.fit(task, loader(), loader(4))
        if evaluated:
            trainer.validate(task, loader(8), verbose=False)
        trainer.save_checkpoint(tmp_path / "fit.ckpt")
        trees.append(mt.load(tmp_path / "fit.ckpt")["callbacks"]["MetricLog"])
    assert trees[0]["tables"] == trees[1]["tables"]
    assert trees[0]["history"].keys() == trees[1]["history"].keys()
