"""Predictions in files: formats, loaders, numbers of samples, and own writers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Linear, loader, quiet

import minitorch as mt
from minitorch.callbacks import BasePredictionWriter, PredictionWriter
from minitorch.errors import ArgumentError, DataError


class Named(Linear):
    """Two entries for each sample."""

    def predict_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
        out = self(batch[0])
        return {"y": out.squeeze(-1), "both": mt.cat([out, out + 1], 1)}


def predict(task: Any, writer: Any, data: Any, **options: Any) -> Any:
    return quiet(writer).predict(task, data, **options)


def joined(found: list[Any], key: str) -> np.ndarray:
    return np.concatenate([one[key].numpy() for one in found])


def read(path: str) -> dict[str, Any]:
    """index, y and both of a file, in one form."""
    if path.endswith("npz"):
        with np.load(path) as file:
            return {key: file[key] for key in file.files}
    text = Path(path).read_text()
    if path.endswith("csv"):
        rows = list(csv.DictReader(text.splitlines()))
        assert list(rows[0]) == ["loader", "index", "y", "both_0", "both_1"]
        both = [[float(row["both_0"]), float(row["both_1"])] for row in rows]
        y = [float(row["y"]) for row in rows]
        return {"y": y, "both": both, "index": [int(row["index"]) for row in rows]}
    lines = [json.loads(line) for line in text.splitlines()]
    return {key: [line[key] for line in lines] for key in ("y", "both", "index")}


@pytest.mark.parametrize("form", ["npz", "csv", "jsonl"])
def test_one_file_holds_all_samples(form: str, tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path / "out", form)
    found = predict(Named(), writer, loader())
    assert [Path(path).name for path in writer.paths] == [f"predictions.{form}"]
    data = read(writer.paths[0])
    np.testing.assert_allclose(data["y"], joined(found, "y"), rtol=1e-6)
    np.testing.assert_allclose(data["both"], joined(found, "both"), rtol=1e-6)
    assert list(data["index"]) == list(range(8))
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"predictions.{form}"]


@pytest.mark.parametrize("form", ["npz", "csv", "jsonl"])
def test_a_file_for_each_batch(form: str, tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path, form, "p", write_interval="batch")
    assert predict(Named(), writer, loader(), return_predictions=False) is None
    assert [Path(p).name for p in writer.paths] == [f"p-0-{i:05}.{form}" for i in range(4)]
    assert [list(read(path)["index"]) for path in writer.paths] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_several_loaders(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path, write_interval="batch_and_epoch")
    found = predict(Named(), writer, [loader(2), loader(1)])
    assert len(writer.paths) == 4
    with np.load(writer.paths[-1]) as file:
        assert sorted(file.files) == sorted(
            f"{i}/{key}" for i in (0, 1) for key in ("y", "both", "index")
        )
        np.testing.assert_array_equal(file["1/y"], joined(found[1], "y"))
    text = PredictionWriter(tmp_path, "jsonl")
    predict(Named(), text, [loader(2), loader(1)])
    lines = [json.loads(line) for line in Path(text.paths[0]).read_text().splitlines()]
    assert [(line["loader"], line["index"]) for line in lines] == [
        *((0, i) for i in range(4)),
        *((1, i) for i in range(2)),
    ]


def test_plain_tensors_and_tuples(tmp_path: Path) -> None:
    writer = PredictionWriter(tmp_path)
    found = predict(Linear(), writer, loader())
    with np.load(writer.paths[0]) as file:
        expected = np.concatenate([one.numpy() for one in found])
        np.testing.assert_array_equal(file["prediction"], expected)

    class Pair(Linear):
        def predict_step(self, batch: Any, batch_idx: int) -> Any:
            return self(batch[0]), batch[1]

    predict(Pair(), writer, loader())
    with np.load(writer.paths[0]) as file:
        assert sorted(file.files) == ["0", "1", "index"]


class Own(BasePredictionWriter):
    def __init__(self, write_interval: str) -> None:
        super().__init__(write_interval)
        self.batches: list[Any] = []
        self.epochs: list[Any] = []

    def write_on_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
        prediction, indices, batch, batch_idx, dataloader_idx = args
        assert prediction.shape[0] == batch[0].shape[0]
        self.batches.append((indices, batch_idx, dataloader_idx))

    def write_on_epoch_end(self, trainer: Any, module: Any, predictions: Any, indices: Any) -> None:
        self.epochs.append(([one.shape[0] for one in predictions], indices))


def test_own_writers() -> None:
    batch, epoch, both = Own("batch"), Own("epoch"), Own("batch_and_epoch")
    for writer in (batch, epoch, both):
        predict(Linear(), writer, loader(2))
    assert batch.batches == both.batches == [([0, 1], 0, 0), ([2, 3], 1, 0)]
    assert epoch.epochs == both.epochs == [([2, 2], [[0, 1], [2, 3]])]
    assert not batch.epochs
    assert not epoch.batches


def test_numbers_that_are_not_known_are_none() -> None:
    writer = Own("batch")
    predict(Linear(), writer, [(mt.ones(2, 2), mt.ones(2, 1))])
    assert writer.batches == [(None, 0, 0)]


def test_numbers_of_samples_that_are_not_known_are_counted(tmp_path: Path) -> None:
    batches = [(mt.ones(n, 2), mt.ones(n, 1)) for n in (2, 3)]
    writer = PredictionWriter(tmp_path, "jsonl", write_interval="batch_and_epoch")
    predict(Linear(), writer, batches)
    numbers = [
        [json.loads(t)["index"] for t in Path(p).read_text().splitlines()] for p in writer.paths
    ]
    assert numbers == [[0, 1], [2, 3, 4], [0, 1, 2, 3, 4]]


WRONG: dict[str, tuple[Any, str]] = {
    "interval": (lambda: PredictionWriter(write_interval="step"), "write_interval must be one of"),
    "format": (
        lambda: PredictionWriter(file_format="pt"),
        "file_format must be one of 'npz', 'csv'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    make, message = WRONG[case]
    with pytest.raises(ArgumentError, match=message):
        predict(Linear(), make(), loader())


NO_SAMPLES: dict[str, Any] = {
    "number": lambda out: 3.0,
    "unequal": lambda out: (out, out[:1]),
    "text": lambda out: {"name": np.array(["a", None])},
    "nothing": lambda out: {},
}


@pytest.mark.parametrize("case", NO_SAMPLES)
def test_predictions_without_samples_are_refused(case: str, tmp_path: Path) -> None:
    class Odd(Linear):
        def predict_step(self, batch: Any, batch_idx: int) -> Any:
            return NO_SAMPLES[case](self(batch[0]))

    with pytest.raises(DataError, match="with one entry for each sample. Got"):
        predict(Odd(), PredictionWriter(tmp_path), loader())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["npz", "csv", "jsonl"])
@pytest.mark.parametrize("interval", ["batch", "epoch"])
@pytest.mark.parametrize("name", ["index", "loader"])
def test_names_of_the_numbers_are_taken(
    form: str, interval: str, name: str, tmp_path: Path
) -> None:
    class Taken(Linear):
        def predict_step(self, batch: Any, batch_idx: int) -> Any:
            return {name: self(batch[0]), "y": self(batch[0])}

    with pytest.raises(DataError, match=rf"named {name}\. Rename them in predict_step"):
        predict(Taken(), PredictionWriter(tmp_path, form, write_interval=interval), loader())
    assert not list(tmp_path.iterdir())


def test_no_batches_are_refused(tmp_path: Path) -> None:
    for data in (loader(), [loader(), loader()]):
        with pytest.raises(DataError, match="a file needs predictions. Got no batch of loader 0"):
            quiet(PredictionWriter(tmp_path), limit_predict_batches=0).predict(Linear(), data)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_failing_write_leaves_nothing(form: str, tmp_path: Path, monkeypatch: Any) -> None:
    def fail(*args: Any) -> None:
        raise LookupError("no such row")

    monkeypatch.setattr(f"minitorch.callbacks.prediction_writer._write_{form}", fail)
    with pytest.raises(LookupError):
        predict(Linear(), PredictionWriter(tmp_path, form), loader())
    assert not list(tmp_path.iterdir())


def test_methods_must_be_defined() -> None:
    for interval, name in (("batch", "write_on_batch_end"), ("epoch", "write_on_epoch_end")):
        with pytest.raises(NotImplementedError, match=name):
            predict(Linear(), BasePredictionWriter(interval), loader())
