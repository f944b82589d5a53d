"""BasePredictionWriter and PredictionWriter: what `predict` gives, in files."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from minitorch import Tensor
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core.nested import map_leaves
from minitorch.callbacks.monitor import refuse
from minitorch.errors import DataError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

INTERVALS = ("batch", "epoch", "batch_and_epoch")
FORMATS = ("npz", "csv", "jsonl")


class BasePredictionWriter(Callback):
    """Hands predictions to `write_on_batch_end` and `write_on_epoch_end`, which a subclass defines.

    Args:
        write_interval: "batch", "epoch" or "batch_and_epoch". For "epoch" all predictions are kept
            on the CPU until the end, also with `predict(..., return_predictions=False)`.
    """

    order = Order.REPORT

    def __init__(self, write_interval: str = "batch") -> None:
        self.write_interval = write_interval
        self._predictions: list[list[Any]] = []
        self._indices: list[list[Any]] = []
        self._sources: list[Iterator[Any] | None] = []

    def write_on_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        prediction: Any,
        batch_indices: Sequence[int] | None,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int,
    ) -> None:
        """Writes one batch.

        Args:
            trainer: The run.
            module: The task.
            prediction: What predict_step returned, detached.
            batch_indices: Numbers of the samples in the dataset, or None where they are not known.
            batch: The batch.
            batch_idx: Its number.
            dataloader_idx: Number of its loader.
        """
        raise NotImplementedError(f"{type(self).__name__}: define write_on_batch_end.")

    def write_on_epoch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        predictions: Sequence[Any],
        batch_indices: Sequence[Any],
    ) -> None:
        """Writes everything: lists with one entry for each batch, for several loaders a list of
        such lists."""
        raise NotImplementedError(f"{type(self).__name__}: define write_on_epoch_end.")

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if self.write_interval not in INTERVALS:
            known = ", ".join(map(repr, INTERVALS))
            refuse(type(self).__name__, "write_interval", self.write_interval, f"one of {known}")

    def on_predict_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._sources = [_sample_numbers(data.loader) for data in trainer.eval_data]
        self._predictions = [[] for _ in self._sources]
        self._indices = [[] for _ in self._sources]

    def on_predict_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        source = self._sources[dataloader_idx]
        indices = None if source is None else next(source, None)
        if self.write_interval != "epoch":
            self.write_on_batch_end(
                trainer, module, outputs, indices, batch, batch_idx, dataloader_idx
            )
        if self.write_interval != "batch":
            self._predictions[dataloader_idx].append(map_leaves(outputs, _on_cpu))
            self._indices[dataloader_idx].append(indices)

    def on_predict_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self.write_interval != "batch" and not trainer.interrupted:
            one = len(self._sources) == 1
            predictions = self._predictions[0] if one else self._predictions
            indices = self._indices[0] if one else self._indices
            self.write_on_epoch_end(trainer, module, predictions, indices)
        self._predictions, self._indices = [], []


def _sample_numbers(loader: Any) -> Iterator[Any] | None:
    """For each batch the numbers of its samples, if the loader goes through its data in order."""
    from minitorch.data import DataLoader, SequentialSampler

    if isinstance(loader, DataLoader) and type(loader.sampler) is SequentialSampler:
        return (list(numbers) for numbers in loader.batch_sampler)
    return None


def _on_cpu(leaf: Any) -> Any:
    return leaf.cpu() if isinstance(leaf, Tensor) else leaf


class PredictionWriter(BasePredictionWriter):
    """Writes predictions to files that other programs read.

    A prediction is a tensor [N, …], or a dict or tuple of such; N is the number of samples. "npz"
    holds an array for each entry, "csv" a row and "jsonl" a JSON object for each sample; both of
    them begin with the columns "loader" and "index", the number of the sample in its loader. A file
    appears when it is complete.

    Args:
        dirpath: Folder; made if it is missing.
        file_format: "npz", "csv" or "jsonl".
        filename: Name without ending; with write_interval="batch" the numbers of the loader and of
            the batch are appended.
        write_interval: "epoch" for one file, "batch" for one for each batch, or "batch_and_epoch".

    Attributes:
        paths: The files that were written in the last run.
    """

    def __init__(
        self,
        dirpath: str | os.PathLike[str] = "predictions",
        file_format: str = "npz",
        filename: str = "predictions",
        write_interval: str = "epoch",
    ) -> None:
        super().__init__(write_interval)
        self.dirpath = os.fspath(dirpath)
        self.file_format = file_format
        self.filename = filename
        self.paths: list[str] = []
        self._done: dict[int, int] = {}

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        super().setup(trainer, module, stage)
        if self.file_format not in FORMATS:
            known = ", ".join(map(repr, FORMATS))
            refuse("PredictionWriter", "file_format", self.file_format, f"one of {known}")
        if stage == "predict":
            self.paths = []
            os.makedirs(self.dirpath, exist_ok=True)

    def write_on_batch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        prediction: Any,
        batch_indices: Sequence[int] | None,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int,
    ) -> None:
        columns = _columns(prediction)
        size = len(next(iter(columns.values())))
        first = self._done.get(dataloader_idx, 0)
        self._done[dataloader_idx] = first + size
        numbers = batch_indices if batch_indices is not None else range(first, first + size)
        name = f"{self.filename}-{dataloader_idx}-{batch_idx:05}"
        self._write(name, [(dataloader_idx, list(numbers), columns)])

    def on_predict_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        super().on_predict_epoch_start(trainer, module)
        self._done = {}

    def write_on_epoch_end(
        self,
        trainer: Trainer,
        module: TaskModule,
        predictions: Sequence[Any],
        batch_indices: Sequence[Any],
    ) -> None:
        several = len(trainer.eval_data) > 1
        parts = []
        for loader, batches in enumerate(predictions if several else [predictions]):
            numbers = batch_indices[loader] if several else batch_indices
            columns = [_columns(one) for one in batches]
            if not columns:
                raise DataError(
                    f"PredictionWriter: a file needs predictions. Got no batch of loader {loader}. "
                    "Raise limit_predict_batches, or leave PredictionWriter out."
                )
            joined = {key: np.concatenate([one[key] for one in columns]) for key in columns[0]}
            size = len(next(iter(joined.values())))
            known = all(one is not None for one in numbers)
            index = [n for one in numbers for n in one] if known else list(range(size))
            parts.append((loader, index, joined))
        self._write(self.filename, parts)

    def _write(self, name: str, parts: list[tuple[int, list[int], dict[str, Any]]]) -> None:
        from minitorch.io.atomic import replacing

        target = os.path.join(self.dirpath, f"{name}.{self.file_format}")
        with replacing(target) as file:
            if self.file_format == "npz":
                np.savez(file, **_arrays(parts))
            else:
                write = _write_csv if self.file_format == "csv" else _write_jsonl
                text = io.TextIOWrapper(file, encoding="utf-8", newline="")
                write(text, parts)
                text.detach()  # the file stays open
        self.paths.append(target)


def _columns(prediction: Any) -> dict[str, np.ndarray]:
    """The arrays of a prediction by name; all have one entry for each sample."""
    if isinstance(prediction, Mapping):
        named = {str(key): value for key, value in prediction.items()}
    elif isinstance(prediction, tuple | list):
        named = {str(i): value for i, value in enumerate(prediction)}
    else:
        named = {"prediction": prediction}
    taken = sorted({"index", "loader"} & named.keys())
    if taken:
        raise DataError(
            'PredictionWriter: the columns "loader" and "index" number the samples. Got '
            f"predictions named {', '.join(taken)}. Rename them in predict_step."
        )
    arrays = {}
    for key, value in named.items():
        host = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        arrays[key] = host
    sizes = {array.shape[0] if array.ndim else None for array in arrays.values()}
    if len(sizes) != 1 or None in sizes or any(a.dtype.hasobject for a in arrays.values()):
        shown = ", ".join(f"{k} {list(a.shape)} {a.dtype}" for k, a in arrays.items()) or "nothing"
        raise DataError(
            "PredictionWriter: a prediction is a tensor, or a dict or tuple of tensors, with one "
            f"entry for each sample. Got {shown}. Return such from predict_step, or derive from "
            "BasePredictionWriter."
        )
    return arrays


def _arrays(parts: list[tuple[int, list[int], dict[str, Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for loader, numbers, columns in parts:
        prefix = f"{loader}/" if len(parts) > 1 else ""
        found |= {prefix + key: array for key, array in columns.items()}
        found[f"{prefix}index"] = np.asarray(numbers)
    return found


def _write_csv(file: TextIO, parts: list[tuple[int, list[int], dict[str, Any]]]) -> None:
    writer = csv.writer(file)
    for place, (loader, numbers, columns) in enumerate(parts):
        flat = {key: array.reshape(len(array), -1) for key, array in columns.items()}
        if place == 0:
            heads = [
                key if columns[key].ndim == 1 else f"{key}_{i}"
                for key, array in flat.items()
                for i in range(array.shape[1])
            ]
            writer.writerow(["loader", "index", *heads])
        for row, number in enumerate(numbers):
            values = [value for array in flat.values() for value in array[row].tolist()]
            writer.writerow([loader, number, *values])


def _write_jsonl(file: TextIO, parts: list[tuple[int, list[int], dict[str, Any]]]) -> None:
    for loader, numbers, columns in parts:
        for row, number in enumerate(numbers):
            values = {key: array[row].tolist() for key, array in columns.items()}
            file.write(json.dumps({"loader": loader, "index": number, **values}) + "\n")
