"""validate, test and predict: what they return, load and print."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, fit, loader, quiet, weights

import minitorch as mt
from minitorch.callbacks import Callback
from minitorch.errors import CheckpointError, TrainerError
from minitorch.trainer import Checkpoint


class Keeper(Callback):
    """Stands for a ModelCheckpoint: keeps the weights after the first epoch as the best."""

    order = Callback.order.PERSIST
    monitor = "val/loss"
    dirpath = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.best_model_path = self.last_model_path = ""
        self.best_model_score = 0.25
        self.best_weights: Any = None

    def on_validation_end(self, trainer: Any, module: Any) -> None:
        if trainer.sanity_checking:
            return
        if not self.best_model_path:
            self.best_model_path = str(self.folder / "best.ckpt")
            trainer.save_checkpoint(self.best_model_path)
            self.best_weights = weights(module)
        self.last_model_path = str(self.folder / "last.ckpt")
        trainer.save_checkpoint(self.last_model_path)


def trained(folder: Path) -> tuple[Any, Any, Keeper, Regression]:
    keeper, task = Keeper(folder), Regression()
    trainer = quiet(max_epochs=2, callbacks=keeper)
    return trainer, trainer.fit(task, loader(), loader(4)), keeper, task


def test_result_names_the_checkpoints(tmp_path: Path) -> None:
    _, result, keeper, _ = trained(tmp_path)
    assert result.best == Checkpoint(keeper.best_model_path, "val/loss", 0.25)
    assert str(result.last) == keeper.last_model_path
    assert "best: val/loss=0.25 in" in str(result)
    assert mt.load(result.best)["global_step"] == 6


@pytest.mark.parametrize("how", ["object", "path", "name", "with module"])
def test_best_weights_are_loaded_into_the_module(how: str, tmp_path: Path) -> None:
    trainer, result, keeper, task = trained(tmp_path)
    given: dict[str, Any] = {
        "object": {"model": result.best},
        "path": {"model": str(result.best)},
        "name": {"model": task, "ckpt_path": "best"},
        "with module": {"model": task, "ckpt_path": result.best},
    }[how]
    trainer.test(dataloaders=loader(4), verbose=False, **given)
    for name, value in keeper.best_weights.items():
        np.testing.assert_array_equal(weights(task)[name], value)


def test_module_in_hand_is_tested_as_it_is(tmp_path: Path) -> None:
    trainer, _, _, task = trained(tmp_path)
    before = weights(task)
    trainer.test(task, loader(4), verbose=False)
    for name, value in before.items():
        np.testing.assert_array_equal(weights(task)[name], value)


def test_checkpoint_of_another_module_is_refused(tmp_path: Path) -> None:
    _, result, _, _ = trained(tmp_path)

    class Other(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.second = mt.nn.Linear(1, 1)

    with pytest.raises((RuntimeError, CheckpointError), match="second"):
        quiet().test(Other(), loader(4), ckpt_path=result.best)


def test_results_and_table(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = arrays(10)
    task = Regression()
    results = quiet().test(task, (x, y), batch_size=4)
    expected = float(((task(mt.tensor(x)) - mt.tensor(y)) ** 2).mean())
    assert list(results[0]) == ["test/loss"]
    assert type(results[0]["test/loss"]) is float
    assert results[0]["test/loss"] == pytest.approx(expected, rel=1e-5)
    assert capsys.readouterr().out == f"test\n  test/loss  {results[0]['test/loss']:.6g}\n"
    quiet().validate(task, (x, y), verbose=False)
    assert capsys.readouterr().out == ""


class Several(Regression):
    def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        self.log("loss", float(dataloader_idx))
        self.log(f"own{dataloader_idx}", 5.0, add_dataloader_idx=False)

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
        return {"y": self(batch[0]), "from": dataloader_idx}


def test_names_stay_apart_after_a_log_that_was_refused() -> None:
    class Task(Several):
        def test_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            with contextlib.suppress(ValueError):
                self.log("own", "text", add_dataloader_idx=False)
            self.log("loss", float(dataloader_idx))

    results = quiet().test(Task(), [loader(4), loader(8)], verbose=False)
    assert [list(result) for result in results] == [
        ["loss/dataloader_idx_0"],
        ["loss/dataloader_idx_1"],
    ]


def test_several_loaders(capsys: pytest.CaptureFixture[str]) -> None:
    results = quiet().test(Several(), [loader(4), loader(8)])
    assert results[0]["loss/dataloader_idx_0"] == 0.0
    assert results[1]["loss/dataloader_idx_1"] == 1.0
    assert "loss/dataloader_idx_1" not in results[0]
    assert "test (loader 1)" in capsys.readouterr().out
    predictions = quiet().predict(Several(), [loader(4), loader(8)])
    assert predictions is not None
    assert [[p["from"] for p in one] for one in predictions] == [[0], [1, 1]]


def test_several_loaders_need_a_step_that_tells_them_apart() -> None:
    with pytest.raises(TrainerError, match=r"takes no dataloader_idx. Define `def test_step"):
        quiet().test(Regression(), [loader(4), loader(8)])


@pytest.mark.parametrize("stage", ["validate", "test", "predict"])
def test_an_evaluation_has_no_dataloader_iter(stage: str) -> None:
    def step(self: Any, dataloader_iter: Any) -> Any:
        return next(dataloader_iter)

    name = {"validate": "validation_step", "test": "test_step", "predict": "predict_step"}[stage]
    task = type("Pulls", (Regression,), {name: step})()
    with pytest.raises(TrainerError, match=f"{name}: dataloader_iter is for training_step alone"):
        getattr(quiet(), stage)(task, loader())


def test_predictions_are_on_the_cpu(pretend_gpu: Any) -> None:
    x, _ = arrays(10)
    task = Regression()
    predictions = quiet(accelerator="gpu").predict(task, x, batch_size=4)
    assert predictions is not None
    assert task.device == mt.device("cuda:0")
    assert {p.device for p in predictions} == {mt.device("cpu")}
    assert quiet().predict(task, x, return_predictions=False) is None


def test_limits_of_evaluations() -> None:
    counts: list[int] = []

    class Count(Callback):
        def on_predict_batch_end(self, *args: Any) -> None:
            counts[-1] += 1

        on_test_batch_end = on_validation_batch_end = on_predict_batch_end

    for stage in ("validate", "test", "predict"):
        name = {"validate": "val"}.get(stage, stage)
        counts.append(0)
        trainer = quiet(callbacks=Count(), **{f"limit_{name}_batches": 2})
        data = arrays(10)[0] if stage == "predict" else loader(12)
        getattr(trainer, stage)(Regression(), data, batch_size=2)
    assert counts == [2, 2, 2]


def test_validation_after_a_fit_stands_beside_its_history() -> None:
    trainer = quiet(max_epochs=1)
    task = Regression()
    result = trainer.fit(task, loader(), loader(4))
    again = trainer.validate(task, loader(4), verbose=False)
    assert again[0]["val/loss"] == pytest.approx(result.history["val/loss"][-1][1])
    assert len(result.history["val/loss"]) == 1


def test_fit_result_last_is_the_module_without_files() -> None:
    task = Regression()
    trainer = quiet(max_epochs=1)
    result = trainer.fit(task, loader())
    assert result.last is task
    assert fit(Regression(), max_epochs=1).best is None
    assert trainer.test(result.last, loader(4), verbose=False)[0].keys() == {"test/loss"}
