"""DataModule: where its hooks stand, what comes from it, and what it must not do."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, fit, loader, quiet, weights

import minitorch as mt
from minitorch.callbacks import Callback
from minitorch.data import DataLoader, TensorDataset
from minitorch.errors import ArgumentError, CheckpointError, DataError, PitfallWarning, TrainerError
from minitorch.trainer import DataModule, TaskModule


class Data(DataModule):
    """Gives every loader and notes its hooks."""

    def __init__(self, batch_size: int = 4, n: int = 24) -> None:
        self.save_hyperparameters()  # without super().__init__() on purpose
        self.seen: list[str] = []
        self.moved = 0

    def prepare_data(self) -> None:
        _NOTES.append("prepare_data")

    def setup(self, stage: str) -> None:
        self.seen.append(f"setup {stage}")
        self.arrays = arrays(self.hparams.n)

    def teardown(self, stage: str) -> None:
        self.seen.append(f"teardown {stage}")

    def _loader(self) -> Any:
        data = TensorDataset(*map(mt.from_numpy, self.arrays))
        return DataLoader(data, self.hparams.batch_size, shuffle=False)

    train_dataloader = val_dataloader = test_dataloader = _loader

    def predict_dataloader(self) -> Any:
        return [mt.from_numpy(self.arrays[0])]

    def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        self.moved += 1
        return batch

    def on_exception(self, exception: BaseException) -> None:
        self.seen.append(f"exception {exception}")

    def state_dict(self) -> dict[str, Any]:
        return {"moved": self.moved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.moved = state_dict["moved"]


_NOTES: list[str] = []


@pytest.mark.parametrize("stage", ["fit", "validate", "test", "predict"])
def test_every_run_takes_its_data(stage: str) -> None:
    _NOTES.clear()
    data, task = Data(), Regression()
    result = getattr(quiet(max_epochs=1), stage)(task, datamodule=data)
    assert _NOTES == ["prepare_data"]
    assert data.seen == [f"setup {stage}", f"teardown {stage}"]
    assert data.moved > 0
    assert data.trainer is task.trainer
    if stage == "predict":
        assert result[0].shape == (24, 1)


def test_weights_are_those_of_the_same_loaders() -> None:
    def train(*data: Any, **more: Any) -> Any:
        mt.manual_seed(1)
        task = Regression()
        quiet(max_epochs=2).fit(task, *data, **more)
        return weights(task)

    loaders = loader(shuffle=False), loader(shuffle=False)
    expected = train(*loaders)
    for got in (train(datamodule=Data()), train(Data())):
        for name, value in expected.items():
            np.testing.assert_array_equal(got[name], value)


def test_its_hooks_come_first() -> None:
    order: list[str] = []

    class Mine(Callback):
        def setup(self, *args: Any) -> None:
            order.append("callback")

    class First(Data):
        def setup(self, stage: str) -> None:
            super().setup(stage)
            order.append("data")

    class Task(Regression):
        def setup(self, stage: str) -> None:
            order.append("module")

    quiet(max_epochs=1, callbacks=[Mine()]).fit(Task(), datamodule=First())
    assert order == ["data", "callback", "module"]


def test_the_modules_own_hooks_fill_what_it_leaves_out() -> None:
    class Task(Regression):
        def val_dataloader(self) -> Any:
            return loader(8)

    class TrainOnly(DataModule):
        def train_dataloader(self) -> Any:
            return loader()

    trainer = quiet(max_epochs=1)
    trainer.fit(Task(), datamodule=TrainOnly())
    assert trainer.num_val_batches == [2]


def test_a_task_without_validation_leaves_its_validation_data_alone() -> None:
    class Task(TaskModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = mt.nn.Linear(3, 1)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return (self.net(batch[0]) - batch[1]).square().mean()

        def configure_optimizers(self) -> Any:
            return mt.optim.SGD(self.parameters(), lr=0.01)

    assert quiet(max_epochs=1).fit(Task(), datamodule=Data()).status == "completed"
    trainer = quiet(max_epochs=1, overfit_batches=1)
    assert trainer.fit(Task(), loader()).global_step == 1
    with pytest.raises(TrainerError, match=r"needs the method validation_step"):
        quiet(max_epochs=1).fit(Task(), loader(), loader())


def test_it_hears_of_an_exception_and_is_torn_down() -> None:
    class Broken(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            raise ZeroDivisionError("here")

    data = Data()
    with pytest.raises(ZeroDivisionError):
        quiet(max_epochs=1).fit(Broken(), datamodule=data)
    assert data.seen == ["setup fit", "exception here", "teardown fit"]


def test_its_state_and_hyper_parameters_are_in_the_checkpoint(tmp_path: Path) -> None:
    data, trainer = Data(batch_size=6), quiet(max_epochs=1)
    trainer.fit(Regression(), datamodule=data)
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    again = Data.load_from_checkpoint(tmp_path / "x.ckpt")
    assert again.hparams == {"batch_size": 6, "n": 24}
    assert again.moved == data.moved == 10  # 2 in the sanity check, 4 and 4
    assert Data.load_from_checkpoint(tmp_path / "x.ckpt", n=12).hparams.n == 12
    resumed = Data(batch_size=6)
    quiet(max_epochs=2).fit(Regression(), datamodule=resumed, ckpt_path=tmp_path / "x.ckpt")
    assert resumed.moved == 18

    class Other(Data):
        def load_state_dict(self, state_dict: dict[str, Any]) -> None:
            raise KeyError("gone")

    Other.__qualname__ = "Data"
    with pytest.raises(
        CheckpointError, match=r"Data.load_state_dict.*failed with KeyError: 'gone'"
    ):
        quiet(max_epochs=3).fit(
            Regression(), datamodule=Other(batch_size=6), ckpt_path=tmp_path / "x.ckpt"
        )


def test_hyper_parameters_of_both_go_to_the_loggers() -> None:
    class Log:
        seen: Any = None

        def log_hyperparams(self, params: Any, metrics: Any = None) -> None:
            self.seen = params

        def log_metrics(self, metrics: Any, step: int) -> None: ...

        def save(self) -> None: ...

        def finalize(self, status: str) -> None: ...

    log = Log()
    quiet(max_epochs=1, logger=log).fit(Regression(), datamodule=Data())
    assert log.seen == {"lr": 0.05, "dropout": 0.0, "batch_size": 4, "n": 24}
    silent = Log()
    options = {"logger": silent, "enable_autolog_hparams": False}
    quiet(max_epochs=1, **options).fit(Regression(), datamodule=Data())
    assert silent.seen is None

    class Clash(Data):
        def __init__(self, lr: float = 1.0) -> None:
            super().__init__()
            self.save_hyperparameters()

    with pytest.raises(ArgumentError, match=r"one value. Got different values of lr"):
        quiet(max_epochs=1, logger=log).fit(Regression(), datamodule=Clash())


def test_from_datasets() -> None:
    x, y = map(mt.from_numpy, arrays(12))
    both = TensorDataset(x, y)
    data = DataModule.from_datasets(both, val_dataset=[both, both], batch_size=3, num_workers=1)
    assert data.train_dataloader().shuffle
    assert len(data.train_dataloader()) == 4
    assert [one.shuffle for one in data.val_dataloader()] == [False, False]
    assert data.test_dataloader() is None
    named = DataModule.from_datasets({"a": both, "b": both})
    assert list(named.train_dataloader()) == ["a", "b"]
    made = Data.from_datasets(both, batch_size=2, n=7)
    assert (made.hparams.n, len(made.train_dataloader())) == (7, 6)

    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int) -> None:
            self.log("val", self.loss(batch))

    trainer = quiet(max_epochs=1)
    trainer.fit(Task(), datamodule=data)
    assert (trainer.num_training_batches, trainer.num_val_batches) == (4, [4, 4])


def test_copies_leave_the_trainer_behind() -> None:
    data = Data()
    quiet(max_epochs=1).fit(Regression(), datamodule=data)
    for one in (copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
        assert one.trainer is None
        assert one.hparams == data.hparams


def test_hparams_files(tmp_path: Path) -> None:
    trainer = quiet(max_epochs=1)
    trainer.fit(Regression(), datamodule=Data())
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    (tmp_path / "h.json").write_text(json.dumps({"lr": 0.5, "dropout": 0.25, "unknown": 1}))
    (tmp_path / "h.csv").write_text("key,value\nlr,0.5\ndropout,0.25\n")
    for kind in ("json", "csv"):
        task = Regression.load_from_checkpoint(
            tmp_path / "x.ckpt", hparams_file=tmp_path / f"h.{kind}"
        )
        assert (task.hparams.lr, task.dropout.p) == (0.5, 0.25)
    pytest.importorskip("yaml")
    (tmp_path / "h.yaml").write_text("n: 3\n")
    data = Data.load_from_checkpoint(tmp_path / "x.ckpt", hparams_file=tmp_path / "h.yaml")
    assert data.hparams.n == 3


WRONG_FILES = {
    "missing.json": (None, r"the file must exist"),
    "h.txt": ("", r"a .yaml, .json or .csv file"),
    "list.json": ("[1]", r"holds names with values. Got list"),
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_hparams_files(name: str, tmp_path: Path) -> None:
    text, message = WRONG_FILES[name]
    if text is not None:
        (tmp_path / name).write_text(text)
    trainer = quiet(max_epochs=1)
    trainer.fit(Regression(), loader())
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    with pytest.raises(CheckpointError, match=rf"hparams_file: .*{message}"):
        Regression.load_from_checkpoint(tmp_path / "x.ckpt", hparams_file=tmp_path / name)


def test_hparams_initial_stay() -> None:
    task = Regression(lr=0.5)
    task.hparams.lr = 0.1
    assert task.hparams_initial == {"lr": 0.5, "dropout": 0.0}


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "both": (
        {"train_dataloaders": [1], "datamodule": Data()},
        ArgumentError,
        r"loaders or from a datamodule. Got both",
    ),
    "class": ({"datamodule": Data}, ArgumentError, r"datamodule must be an object.*Got a class"),
    "other": ({"datamodule": object()}, ArgumentError, r"DataModule. Got object"),
    "empty": (
        {"datamodule": DataModule()},
        DataError,
        r"training data is missing. Pass train_dataloaders.*in DataModule or Regression",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_datamodules(case: str) -> None:
    options, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        quiet(max_epochs=1).fit(Regression(), **options)


class Keeps(Data):
    """State in prepare_data, in four ways."""

    def prepare_data(self) -> None:
        self.vocabulary = {"a": 0}
        self.seen.append("counted")
        self.hparams.n = 12


def test_state_in_prepare_data_is_refused_and_taken_back() -> None:
    data = Keeps()
    message = r"Keeps.prepare_data: .*Got self.seen, self.vocabulary, self.hparams assigned. Move"
    with pytest.raises(TrainerError, match=message):
        quiet(max_epochs=1).fit(Regression(), datamodule=data)
    assert not hasattr(data, "vocabulary")
    assert (data.seen, data.hparams.n) == ([], 24)
    with pytest.warns(PitfallWarning, match=r"Keeps.prepare_data"):
        quiet(max_epochs=1, checks="warn").fit(Regression(), datamodule=data)
    assert data.vocabulary == {"a": 0}


def test_fit_of_the_module_itself_is_checked_too() -> None:
    class Task(Regression):
        def prepare_data(self) -> None:
            self.extra = mt.nn.Linear(1, 1)

    with pytest.raises(TrainerError, match=r"Task.prepare_data.*self\.\w+ assigned"):
        fit(Task(), max_epochs=1)
