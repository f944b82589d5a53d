"""Callbacks and tasks that meet each other, in whole runs and in resumed ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from averaging_tasks import Normed, SaveAndDie, assert_equal, values
from scripted_tasks import quiet

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import (
    BackboneFinetuning,
    EMAWeightAveraging,
    ModelCheckpoint,
    ModelPruning,
    Rollback,
    StochasticWeightAveraging,
    WeightAveraging,
)
from minitorch.data import DataLoader, TensorDataset
from minitorch.errors import ArgumentError
from minitorch.nn import functional as F
from minitorch.trainer import TaskModule

BATCHES = 6


def loader(**options: Any) -> Any:
    rng = np.random.default_rng(0)
    x = mt.tensor(rng.normal(size=(4 * BATCHES, 2)).astype("float32"))
    return DataLoader(TensorDataset(x, (x * x).sum(1, keepdim=True)), batch_size=4, **options)


class Parts(TaskModule):
    """A backbone and a head; some losses, counted over all epochs, are spoiled."""

    def __init__(self, bad: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.bad = bad
        self.backbone, self.head = nn.Linear(2, 4), nn.Linear(4, 1)
        self.drop = nn.Dropout(0.2)

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return F.mse_loss(self.head(self.drop(self.backbone(x)).tanh()), y)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        number = self.trainer.position.batches
        loss = self.loss(batch) * (float("nan") if number in self.bad else 1.0)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", self.loss(batch))

    def configure_optimizers(self) -> Any:
        return mt.optim.Adam([p for p in self.parameters() if p.requires_grad], lr=0.01)


def train(task: Any, *callbacks: Any, ckpt: Any = None, data: Any = None, **options: Any) -> Any:
    trainer = quiet(*callbacks, **{"max_epochs": 3, "log_every_n_steps": 1, **options})
    return trainer.fit(task, data or loader(shuffle=True), loader(shuffle=False), ckpt_path=ckpt)


def cut(task: Any, make: Any, batches: int, path: Path, **options: Any) -> Any:
    """What a run that ended after some batches and was resumed leaves behind."""
    mt.manual_seed(1)
    with pytest.raises(ZeroDivisionError):
        train(task(), *make(), SaveAndDie(batches, path), **options)
    mt.manual_seed(2)
    again = task()
    return again, train(again, *make(), ckpt=path, **options)


ROLLED_BACK: dict[str, Any] = {
    "pruned": lambda: ModelPruning("l1_unstructured", amount=0.3),
    "pruned after validations": lambda: ModelPruning(
        "l1_unstructured", amount=0.3, prune_on_train_epoch_end=False
    ),
    "thawed": lambda: BackboneFinetuning(unfreeze_backbone_at_epoch=1),
    "averaged": lambda: StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=1),
}


@pytest.mark.filterwarnings("ignore:Rollback")
@pytest.mark.parametrize("case", ROLLED_BACK)
def test_a_model_that_changes_its_parts_is_rolled_back_to_them(case: str, tmp_path: Path) -> None:
    def task() -> Parts:
        return Parts((8, 15))

    def make() -> list[Any]:
        return [Rollback(5, 2, rtol=None), ROLLED_BACK[case]()]

    mt.manual_seed(1)
    whole = task()
    result = train(whole, *make())
    assert result.status == "completed"
    assert 0 < result.global_step < 3 * BATCHES - 2
    again, resumed = cut(task, make, 7, tmp_path / "x.ckpt")
    assert resumed.history == result.history
    assert_equal(values(again), values(whole))


@pytest.mark.filterwarnings("ignore:Rollback")
def test_a_window_that_was_resumed_inside_is_left_out_as_a_whole(tmp_path: Path) -> None:
    def task() -> Parts:
        return Parts((5,))

    def make() -> list[Any]:
        return [Rollback(5, 1, rtol=None)]

    mt.manual_seed(1)
    whole = task()
    result = train(whole, *make(), accumulate_grad_batches=3)
    for batches in (4, 5):
        path = tmp_path / f"{batches}.ckpt"
        again, resumed = cut(task, make, batches, path, accumulate_grad_batches=3)
        assert resumed.history == result.history
        assert_equal(values(again), values(whole))


def test_a_thawed_backbone_takes_part_in_the_averaged_rate() -> None:
    task = Parts()
    thaw = BackboneFinetuning(unfreeze_backbone_at_epoch=1)
    result = train(task, thaw, StochasticWeightAveraging(swa_lrs=0.02, swa_epoch_start=1))
    first, second = task.trainer.optimizers[0].param_groups
    assert (result.status, second["swa_lr"]) == ("completed", first["swa_lr"])


def test_rates_of_an_average_that_began_before_the_thaw_are_resumed(tmp_path: Path) -> None:
    def make() -> list[Any]:
        return [
            BackboneFinetuning(unfreeze_backbone_at_epoch=1),
            StochasticWeightAveraging(swa_lrs=[0.02], swa_epoch_start=1, annealing_epochs=2),
        ]

    mt.manual_seed(1)
    whole = Parts()
    result = train(whole, *make())
    for batches in (3, BATCHES + 2, 2 * BATCHES + 1):
        again, resumed = cut(Parts, make, batches, tmp_path / f"{batches}.ckpt")
        assert resumed.history == result.history
        assert_equal(values(again), values(whole))


class Estimated(Normed):
    """Two optimizers, whose losses are yielded."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        yield "layer", self.loss(batch)
        yield "norm", self.loss(batch)

    def configure_optimizers(self) -> Any:
        parts = {"layer": self.linear, "norm": self.norm}
        return {name: mt.optim.SGD(part.parameters(), lr=0.01) for name, part in parts.items()}


class Single(Estimated):
    training_step = Normed.training_step
    configure_optimizers = Normed.configure_optimizers


@pytest.mark.parametrize("task", [Single, Estimated])
def test_estimates_read_shuffled_data_alike_when_resumed(task: Any, tmp_path: Path) -> None:
    def make() -> list[Any]:
        return [WeightAveraging(buffers="estimate")]

    mt.manual_seed(1)
    whole = task()
    result = train(whole, *make())
    again, resumed = cut(task, make, 2, tmp_path / "x.ckpt")
    assert resumed.history == result.history
    assert_equal(values(again), values(whole))
    mean = np.mean([x.numpy() for x, _ in loader(shuffle=False)], axis=(0, 1))
    np.testing.assert_allclose(whole.norm.running_mean.numpy(), mean, atol=1e-6)


class Pulls(Normed):
    def training_step(self, dataloader_iter: Any) -> Any:
        return self.loss(next(dataloader_iter)[0])


def test_estimates_of_a_step_that_takes_its_batches_need_a_forward() -> None:
    with pytest.raises(ArgumentError, match="takes dataloader_iter. Pass forward="):
        train(Pulls(), WeightAveraging(buffers="estimate"))
    train(Pulls(), WeightAveraging(buffers="estimate", forward=lambda m, batch: m(batch[0])))


class Manual(Parts):
    automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.loss(batch))
        optimizer.step()


def test_a_manual_run_may_resume_at_the_end_of_its_first_epoch(tmp_path: Path) -> None:
    _, result = cut(Manual, lambda: [EMAWeightAveraging()], BATCHES, tmp_path / "x.ckpt")
    assert (result.status, result.global_step) == ("completed", 3 * BATCHES)


def test_names_of_files_that_are_being_written_are_taken(tmp_path: Path) -> None:
    keepers = [
        ModelCheckpoint(tmp_path, monitor=name, mode=mode, save_async=True, save_last=False)
        for name, mode in (("val_loss", "min"), ("val_loss", "max"))
    ]
    train(Parts(), *keepers, max_epochs=4)
    paths = [keeper.best_model_path for keeper in keepers]
    assert paths[0] != paths[1]
    assert sorted(paths) == sorted(map(str, tmp_path.glob("*.ckpt")))
