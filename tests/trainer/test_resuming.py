"""Resuming under its own name, and hyper-parameters that are not those of the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_exact_resume import assert_same
from toy_tasks import Regression, loader, quiet, weights

import minitorch as mt
from minitorch.callbacks import ModelCheckpoint
from minitorch.errors import CheckpointError, TrainerError
from minitorch.trainer import DataModule
from minitorch.trainer.same_value import same_value


class Kept(Regression):
    """Has a hyper-parameter that no optimizer sees."""

    def __init__(self, scale: float = 1.0, lr: float = 0.05) -> None:
        super().__init__(lr=lr)
        self.save_hyperparameters()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.loss(batch) * self.hparams.scale


def begun(task: Any, path: Path, **data: Any) -> Path:
    trainer = quiet(max_epochs=1)
    trainer.fit(task, **(data or {"train_dataloaders": loader(shuffle=False)}))
    trainer.save_checkpoint(path)
    return path


def test_resume_is_a_fit_from_a_checkpoint(tmp_path: Path) -> None:
    quiet(max_epochs=1, callbacks=ModelCheckpoint(tmp_path)).fit(Kept(), loader(shuffle=False))
    [file] = tmp_path.glob("*.ckpt")
    found = []
    for start in ("auto", file):
        mt.manual_seed(4)
        task, keep = Kept(), ModelCheckpoint(tmp_path, save_last=False, save_top_k=0)
        trainer = quiet(max_epochs=2, callbacks=keep)
        result = trainer.resume(start, task, loader(shuffle=False))
        assert (result.epochs, trainer.resumed) == (2, True)
        found.append(weights(task))
    assert_same(*found)
    with pytest.raises(TypeError, match="ckpt_path"):
        quiet().resume(model=Kept())


CHANGED: dict[str, tuple[dict[str, float], str]] = {
    "alone": ({"scale": 2.0}, r"x.ckpt, scale: 1.0 in the checkpoint, 2.0 now\. Pass"),
    "with an option": (
        {"scale": 2.0, "lr": 0.5},
        r"lr: 0.05 in the checkpoint, 0.5 now; scale: 1.0 in the checkpoint, 2.0 now\. Pass",
    ),
}


@pytest.mark.parametrize("case", CHANGED)
def test_changed_hyper_parameters_are_accepted_by_name(case: str, tmp_path: Path) -> None:
    given, message = CHANGED[case]
    path = begun(Kept(), tmp_path / "x.ckpt")
    with pytest.raises(TrainerError, match=message):
        quiet(max_epochs=2).fit(Kept(**given), loader(shuffle=False), ckpt_path=path)
    for choice, scale in (("old", 1.0), ("new", 2.0)):
        task = Kept(**given)
        quiet(max_epochs=2).fit(task, loader(shuffle=False), ckpt_path=path, hparams=choice)
        assert task.hparams.scale == scale


def test_weights_that_do_not_fit_name_the_hyper_parameter(tmp_path: Path) -> None:
    class Wide(Regression):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.register_buffer("more", mt.zeros(width))

    path = begun(Wide(2), tmp_path / "x.ckpt")
    with pytest.raises(CheckpointError) as caught:
        quiet(max_epochs=2).fit(Wide(3), loader(), ckpt_path=path)
    assert caught.value.__notes__ == [
        "Its hyper-parameters differ: width: 2 in the checkpoint, 3 now."
    ]


LONG = np.arange(5000.0)
SAME: dict[str, tuple[Any, Any]] = {
    "order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "scalars": ([np.float64(0.1), np.int64(3)], [0.1, 3]),
    "a tensor": (mt.tensor(3.0), 3.0),
    "inside": ({"a": (1, [2])}, {"a": [1, (2,)]}),
    "nan": ([float("nan"), np.array([np.nan, 1])], [float("nan"), np.array([np.nan, 1])]),
    "arrays": (LONG, LONG.copy()),
    "texts": (np.array(["a", "b"]), np.array(["a", "b"])),
}
DIFFERENT: dict[str, tuple[Any, Any]] = {
    "in the middle": (LONG, np.where(LONG == 2500, 7, LONG)),
    "shape": (np.ones(2), np.ones((1, 2))),
    "kind of number": (np.ones(2), np.ones(2, "int32")),
    "an array and none": (np.ones(2), [1.0, 1.0]),
    "a key": ({"a": 1}, {"a": 1, "b": None}),
    "length": ([1], [1, 1]),
    "nan": (float("nan"), 1.0),
    "text": ("1", 1),
}


@pytest.mark.parametrize("case", SAME)
def test_values_that_mean_the_same(case: str) -> None:
    assert same_value(*SAME[case])


@pytest.mark.parametrize("case", DIFFERENT)
def test_values_that_differ(case: str) -> None:
    assert not same_value(*DIFFERENT[case])


def test_hyper_parameters_of_data_are_compared_too(tmp_path: Path) -> None:
    class Data(DataModule):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.save_hyperparameters()

        def train_dataloader(self) -> Any:
            return loader(batch_size=self.hparams.size, shuffle=False)

    path = begun(Regression(), tmp_path / "x.ckpt", datamodule=Data(4))
    with pytest.raises(TrainerError, match="size: 4 in the checkpoint, 6 now"):
        quiet(max_epochs=2).fit(Regression(), datamodule=Data(6), ckpt_path=path)


def test_a_trainer_that_kept_a_file_says_so(tmp_path: Any) -> None:
    trainer = quiet(max_epochs=1, callbacks=ModelCheckpoint(tmp_path))
    trainer.fit(Regression(), loader())
    with pytest.raises(
        TrainerError, match=r"larger max_epochs and fit\(..., ckpt_path=result.last"
    ):
        trainer.fit(Regression(), loader())


@pytest.mark.parametrize("entry", ["fit", "validate"])
def test_a_module_is_no_checkpoint(entry: str) -> None:
    task = Regression()
    with pytest.raises(mt.ArgumentError, match=r"Got Regression.*save_checkpoint\(path\)"):
        getattr(quiet(max_epochs=1), entry)(task, loader(), ckpt_path=task)
