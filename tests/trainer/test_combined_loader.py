"""Several training loaders at once, loaders made anew, and steps that pull their batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, loader, quiet, weights

import minitorch as mt
from minitorch.callbacks import Callback
from minitorch.data import DataLoader
from minitorch.errors import ArgumentError, DataError
from minitorch.trainer import CombinedLoader

A, B = [1, 2, 3], [10, 20, 30, 40, 50, 60, 70]
EXPECTED: dict[str, list[Any]] = {
    "min_size": [(1, 10), (2, 20), (3, 30)],
    "max_size": [(1, 10), (2, 20), (3, 30), *[(None, b) for b in B[3:]]],
    "max_size_cycle": [(1, 10), (2, 20), (3, 30), (1, 40), (2, 50), (3, 60), (1, 70)],
    "sequential": [*A, *B],
}


@pytest.mark.parametrize("mode", EXPECTED)
def test_modes(mode: str) -> None:
    combined = CombinedLoader((A, B), mode)
    got = list(combined)
    assert [batch for batch, _, _ in got] == EXPECTED[mode]
    assert len(combined) == len(got)
    if mode == "sequential":
        assert [(i, k) for _, i, k in got[2:5]] == [(2, 0), (0, 1), (1, 1)]
    else:
        assert [(i, k) for _, i, k in got] == [(i, 0) for i in range(len(got))]


@pytest.mark.parametrize("mode", EXPECTED)
@pytest.mark.parametrize("at", [1, 3, 4, 6])
def test_a_saved_place_goes_on_with_the_next_batch(mode: str, at: int) -> None:
    def make() -> Any:
        x = [mt.from_numpy(arrays(n)[0]) for n in (12, 24)]
        loaders = {"a": DataLoader(x[0], 4, shuffle=True), "b": DataLoader(x[1], 4, shuffle=True)}
        return CombinedLoader({**loaders, "c": [B]}, mode)

    def plain(batches: Any) -> list[Any]:
        return [repr(batch) for batch, _, _ in batches]

    whole = make()
    whole.set_epoch(2)
    expected = plain(whole)
    first = make()
    first.set_epoch(2)
    batches = iter(first)
    for _ in range(min(at, len(expected))):
        next(batches)
    rest = make()
    rest.load_state_dict(first.state_dict())
    rest.set_epoch(2)
    assert plain(rest) == expected[at:]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", EXPECTED)
def test_same_batches_as_lightning(mode: str) -> None:
    pytest.importorskip("torch")
    theirs = pytest.importorskip("pytorch_lightning.utilities").CombinedLoader
    for data in ({"a": A, "b": B}, [A, B], {"a": range(2), "b": {"c": range(5), "d": range(3)}}):
        assert list(CombinedLoader(data, mode)) == [tuple(item) for item in theirs(data, mode)], (
            data
        )


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "mode": (lambda: CombinedLoader([A], "longest"), ArgumentError, r"mode must be one of"),
    "empty": (lambda: CombinedLoader([]), DataError, r"at least one loader. Got \[\]"),
    "once": (
        lambda: list(CombinedLoader([iter(A), B], "max_size_cycle")),
        DataError,
        r"must give batches. Got none from the list_iterator at place 0",
    ),
    "other": (
        lambda: CombinedLoader([A]).load_state_dict({"loaders": [1, 2]}),
        DataError,
        r"must be those that were saved. Got 1 for 2",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refusals(case: str) -> None:
    call, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        call()


class Two(Regression):
    """Learns from two loaders."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch["a"]) + 0.5 * self.loss(batch["b"])
        self.log("loss", loss)
        return loss


class Stop(Callback):
    """Saves after one batch."""

    def __init__(self, path: Path, at: int) -> None:
        self.path, self.at = path, at

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.position.batches == self.at:
            trainer.save_checkpoint(self.path)


@pytest.mark.parametrize("at", [2, 5, 8])
def test_a_fit_on_several_loaders_resumes_exactly(at: int, tmp_path: Path) -> None:
    def loaders() -> Any:
        return {"a": loader(8), "b": loader(20)}

    path = tmp_path / "x.ckpt"
    mt.manual_seed(5)
    task, trainer = Two(), quiet(max_epochs=2, callbacks=[Stop(path, at)])
    trainer.fit(task, loaders())
    assert trainer.num_training_batches == 5
    other = Two()
    quiet(max_epochs=2).fit(other, loaders(), ckpt_path=path)
    for name, value in weights(task).items():
        np.testing.assert_array_equal(weights(other)[name], value)


def test_validation_takes_dicts_and_combined_loaders() -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            self.log("val", float(dataloader_idx), batch_size=1)

    trainer = quiet()
    for several in (
        {"a": loader(4), "b": loader(8)},
        CombinedLoader([loader(4), loader(8)], "sequential"),
    ):
        got = trainer.validate(Task(), several, verbose=False)
        assert got == [{"val/dataloader_idx_0": 0.0}, {"val/dataloader_idx_1": 1.0}]
    beside = CombinedLoader([loader(4), loader(8)], "min_size")
    assert trainer.validate(Task(), beside, verbose=False) == [{"val": 0.0}]


@pytest.mark.parametrize(("every", "made"), [(0, [0]), (1, [0, 1, 2, 3]), (2, [0, 2])])
def test_loaders_are_made_anew(every: int, made: list[int]) -> None:
    epochs: list[int] = []

    class Task(Regression):
        def train_dataloader(self) -> Any:
            epochs.append(self.current_epoch)
            return loader(4 * (1 + len(epochs)))

    trainer = quiet(max_epochs=4, reload_dataloaders_every_n_epochs=every)
    trainer.fit(Task())
    assert epochs == made
    assert trainer.num_training_batches == 1 + len(made)


class Pulls(Regression):
    """Takes two batches in a step, where there are two."""

    def training_step(self, dataloader_iter: Any) -> Any:
        batch, batch_idx, dataloader_idx = next(dataloader_iter)
        self.seen.append((batch_idx, dataloader_idx, len(batch[0])))
        loss = self.loss(batch)
        self.log("loss", loss)
        for other, _, _ in dataloader_iter:
            loss = loss + self.loss(other)
            break
        return loss

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        self.moved += 1
        return batch

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []
        self.moved = 0


def test_a_step_that_takes_its_batches_itself() -> None:
    task = Pulls()
    result = quiet(max_epochs=2).fit(task, loader(20))
    assert task.seen == [(0, 0, 4), (1, 0, 4), (2, 0, 4)] * 2
    assert task.moved == 10
    assert result.global_step == 6
    with pytest.raises(DataError, match=r"takes several batches needs a loader that keeps its pl"):
        quiet(max_epochs=1).fit(Pulls(), [tuple(map(mt.from_numpy, arrays(4)))] * 3)


@pytest.mark.parametrize("at", [1, 2, 4])
def test_it_resumes_exactly(at: int, tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"
    task = Pulls()
    quiet(max_epochs=2, callbacks=[Stop(path, at)]).fit(task, loader(20))
    other = Pulls()
    quiet(max_epochs=2).fit(other, loader(20), ckpt_path=path)
    for name, value in weights(task).items():
        np.testing.assert_array_equal(weights(other)[name], value)
