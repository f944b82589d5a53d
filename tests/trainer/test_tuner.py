"""Tuner, its two callbacks, and seeds: what they find, and that they leave no trace."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, loader, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import BatchSizeFinder, Callback, LearningRateFinder
from minitorch.data import DataLoader, TensorDataset
from minitorch.errors import ArgumentError, TrainerError
from minitorch.metrics import MeanSquaredError
from minitorch.trainer import DataModule, Tuner, isolate_rng, seed_everything
from minitorch.trainer.rate_finder import LRFinder
from minitorch.trainer.size_finder import search

STEPS = 30


class Task(Regression):
    """With a norm, dropout, a metric and notes, so that much can move."""

    def __init__(self, lr: float = 0.01, batch_size: int = 4) -> None:
        super().__init__(lr, dropout=0.2)
        self.save_hyperparameters()
        self.norm = nn.BatchNorm1d(3)
        self.metric = MeanSquaredError()
        self.notes: list[float] = []

    def forward(self, x: Any) -> Any:
        return super().forward(self.norm(x))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        self.notes.append(loss.item())
        self.metric(self(batch[0]).detach(), batch[1])
        return loss

    def train_dataloader(self) -> Any:
        data = TensorDataset(*map(mt.from_numpy, arrays(64)))
        return DataLoader(data, self.hparams.batch_size, shuffle=True)

    def val_dataloader(self) -> Any:
        data = TensorDataset(*map(mt.from_numpy, arrays(64, seed=1)))
        return DataLoader(data, self.hparams.batch_size)


def everything(task: Any) -> Any:
    rng = random.getstate(), np.random.get_state()[1].tolist(), mt.random.state_dict()  # type: ignore[union-attr]
    held = task.notes, task.metric.updates, task.hparams, task.training
    return [{k: v.tolist() for k, v in weights(task).items()}, repr(held), rng]


def test_rates_rise_and_nothing_else_moves() -> None:
    task, trainer = Task(), quiet(max_epochs=1)
    before = everything(task)
    finder = Tuner(trainer).lr_find(
        task, min_lr=1e-4, max_lr=1.0, num_training=STEPS, update_attr=False
    )
    assert everything(task) == before
    rates = finder.results["lr"]
    assert rates == pytest.approx(np.geomspace(1e-4, 1.0, STEPS)[: len(rates)])
    assert 1e-4 < finder.suggestion() < 1.0
    assert finder.lr_min < finder.suggestion(skip_begin=0) < finder.lr_max


def test_a_fit_after_it_is_the_fit_without_it() -> None:
    def train(*, find: bool) -> Any:
        mt.manual_seed(7)
        task, trainer = Task(), quiet(max_epochs=1)
        if find:
            Tuner(trainer).lr_find(task, num_training=STEPS, update_attr=False)
            Tuner(trainer).scale_batch_size(task, max_val=8)
            task.hparams.batch_size = 4
        trainer.fit(task)
        return weights(task)

    plain, found = train(find=False), train(find=True)
    for name, value in plain.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_rate_belongs_to_an_update(accumulate: int) -> None:
    task = Task()
    trainer = quiet(accumulate_grad_batches=accumulate)
    finder = Tuner(trainer).lr_find(
        task, num_training=6, early_stop_threshold=None, update_attr=False, mode="linear"
    )
    assert finder.results["lr"] == pytest.approx(np.linspace(1e-8, 1.0, 6))
    assert len(finder.results["loss"]) == 6


def test_it_ends_where_the_loss_grows_or_is_not_finite() -> None:
    for high, threshold in ((1e4, 4.0), (1e30, None)):
        finder = Tuner(quiet()).lr_find(
            Task(), max_lr=high, num_training=60, early_stop_threshold=threshold
        )
        assert len(finder.results["lr"]) < 60


def test_the_suggestion_goes_where_the_rate_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    class Attribute(Task):
        def __init__(self) -> None:
            super().__init__()
            self.learning_rate = 5.0
            del self.hparams["lr"]
            self.hparams["rate"] = 5.0

        def configure_optimizers(self) -> Any:
            return mt.optim.SGD(self.parameters(), lr=0.1)

    task = Attribute()
    finder = Tuner(quiet()).lr_find(task, num_training=STEPS)
    assert task.learning_rate == finder.suggestion() != 5.0
    assert "the learning rate is set to" in capsys.readouterr().out
    Tuner(quiet()).lr_find(task, num_training=STEPS, attr_name="rate")
    assert task.hparams.rate == finder.suggestion()
    few = Tuner(quiet()).lr_find(task, num_training=4)
    assert few.suggestion() is None
    assert "the learning rate stays" in capsys.readouterr().out


def test_plot(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    finder = Tuner(quiet()).lr_find(Task(), num_training=STEPS)
    figure = finder.plot(suggest=True)
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    assert [len(line.get_xdata()) for line in axes.lines] == [len(finder.results["lr"]), 1]
    assert LRFinder("linear", 0.1, 1.0, 5).plot(ax=axes) is figure
    matplotlib.pyplot.close(figure)


@pytest.mark.filterwarnings("ignore")
def test_suggestion_is_lightnings() -> None:
    pytest.importorskip("torch")
    tuner = pytest.importorskip("pytorch_lightning.tuner.lr_finder")
    ours = Tuner(quiet()).lr_find(Task(), num_training=STEPS)
    theirs = tuner._LRFinder("exponential", 1e-8, 1.0, STEPS)
    theirs.results = ours.results
    assert ours.suggestion() == pytest.approx(theirs.suggestion())


def test_the_callback_sets_the_rate_before_the_optimizers_are_made() -> None:
    seen: list[float] = []

    class Look(Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            seen.append(trainer.optimizers[0].param_groups[0]["lr"])

    class Counting(Task):
        calls = 0

        def setup(self, stage: str) -> None:
            self.calls += 1

    finder, task = LearningRateFinder(num_training_steps=STEPS), Counting()
    quiet(max_epochs=1, callbacks=[finder, Look()]).fit(task)
    assert seen == [task.hparams.lr] == [finder.optimal_lr.suggestion()]
    assert task.calls == 1
    assert len(task.notes) == 16


# Batch sizes.


class Limited(Task):
    """Has memory for so many samples."""

    room = 20

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if len(batch[0]) > self.room:
            raise MemoryError
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        if len(batch[0]) > self.room:
            raise MemoryError


@pytest.mark.parametrize(("mode", "expected"), [("power", 16), ("binsearch", 19)])
@pytest.mark.parametrize("method", ["fit", "validate"])
def test_the_largest_size_that_fits(mode: str, expected: int, method: str) -> None:
    task = Limited()
    before = everything(task)
    found = Tuner(quiet()).scale_batch_size(task, mode=mode, method=method)
    assert found == task.hparams.batch_size == expected
    task.hparams.batch_size = 4
    assert everything(task) == before


def test_all_samples_and_max_val_are_enough() -> None:
    assert Tuner(quiet()).scale_batch_size(Task()) == 64
    assert Tuner(quiet()).scale_batch_size(Task(), max_val=24) == 24


def test_a_datamodule_has_the_size() -> None:
    class Own(DataModule):
        def __init__(self, batch_size: int = 2) -> None:
            self.save_hyperparameters()

        train_dataloader = Task.train_dataloader

    data = Own()
    assert Tuner(quiet()).scale_batch_size(Limited(), datamodule=data) == data.hparams.batch_size


def test_the_callback_gives_the_run_new_loaders() -> None:
    finder, task = BatchSizeFinder(steps_per_trial=1), Limited()
    trainer = quiet(max_epochs=1, callbacks=[finder])
    trainer.fit(task)
    assert (finder.optimal_batch_size, trainer.num_training_batches) == (16, 4)
    assert len(task.notes) == 4
    trainer = quiet(callbacks=[BatchSizeFinder(steps_per_trial=1, max_val=8)])
    trainer.validate(task, verbose=False)
    assert len(trainer.eval_data) == 1
    assert trainer.eval_data[0].loader.batch_size == task.hparams.batch_size == 8


def test_search() -> None:
    def room(most: int) -> Any:
        return lambda size: (size <= most, float("inf"))

    assert search(room(1), "power", 8, 25, 0.0, 100) == 1
    assert search(room(77), "binsearch", 1, 25, 0.0, 8192) == 77
    assert search(room(77), "binsearch", 1, 3, 0.0, 8192) == 4
    for most in (0, 1):
        with pytest.raises(MemoryError, match=r"not even a batch of one|nothing fitted within 2"):
            search(room(most), "power", 64, 8 if not most else 2, 0.0, 100)


WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "method": ("lr_find", {"method": "test"}, r'method must be "fit"'),
    "rates": ("lr_find", {"min_lr": 2.0}, r"0 < min_lr < max_lr"),
    "steps": ("lr_find", {"num_training": 1}, r"num_training must be an integer ≥ 2"),
    "mode": ("lr_find", {"mode": "log"}, r'mode must be "exponential" or "linear"'),
    "threshold": ("lr_find", {"early_stop_threshold": 0.5}, r"must be > 1. Got 0.5"),
    "name": ("lr_find", {"attr_name": "rate"}, r"Task has no rate. Add it.*with attr_name"),
    "loaders": ("scale_batch_size", {"train_dataloaders": [1]}, r"Got loaders themselves"),
    "size mode": ("scale_batch_size", {"mode": "double"}, r'"power" or "binsearch"'),
    "stage": ("scale_batch_size", {"method": "train"}, r"method must be one of fit"),
    "count": ("scale_batch_size", {"init_val": 0}, r"init_val must be an integer ≥ 1"),
    "margin": ("scale_batch_size", {"margin": 1.0}, r"margin must be a share"),
    "arg": ("scale_batch_size", {"batch_arg_name": "size"}, r"Task has no size.*batch_arg_name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str) -> None:
    call, options, message = WRONG[case]
    with pytest.raises(ArgumentError, match=message):
        getattr(Tuner(quiet()), call)(Task(), **options)


def test_a_loader_that_ignores_the_size_and_two_optimizers_are_refused() -> None:
    class Fixed(Task):
        def train_dataloader(self) -> Any:
            return loader(batch_size=4)

    with pytest.raises(ArgumentError, match=r"Got batches of 4 where it was set to 2"):
        Tuner(quiet()).scale_batch_size(Fixed())

    class Two(Task):
        automatic_optimization = False

        def configure_optimizers(self) -> Any:
            return [super(Two, self).configure_optimizers() for _ in range(2)]

    with pytest.raises(ArgumentError, match=r"one optimizer has one learning rate.*Got 2"):
        Tuner(quiet()).lr_find(Two())


def test_other_errors_pass() -> None:
    class Broken(Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return None

    task = Broken()
    with pytest.raises(TrainerError, match=r"training_step: it must return the loss"):
        Tuner(quiet()).lr_find(task)


# Seeds.


def test_seed_everything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def draws() -> Any:
        return mt.rand(2).tolist(), np.random.rand(), random.random()

    with isolate_rng():
        assert seed_everything(11, workers=True) == 11
        assert capsys.readouterr().out == "Seed set to 11\n"
        first = draws()
        seed_everything(11, verbose=False)
        assert draws() == first
        monkeypatch.setenv("PL_GLOBAL_SEED", "11")
        assert seed_everything(verbose=False) == 11
        assert draws() == first


def test_isolate_rng() -> None:
    before = everything(Task())[2]
    with isolate_rng():
        mt.rand(3)
        np.random.rand()
        random.random()
    assert everything(Task())[2][:2] == before[:2]


@pytest.mark.parametrize("seed", [-1, 2**32, "x", 1.5, True])
def test_wrong_seeds(seed: Any) -> None:
    with pytest.raises(ArgumentError, match=r"a seed is an integer from 0 to 4294967295"):
        seed_everything(seed)
