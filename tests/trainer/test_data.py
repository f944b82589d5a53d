"""Data in every accepted form, limits, and intervals between validations."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import Batches, Callback
from minitorch.data import DataLoader, Dataset, IterableDataset, TensorDataset
from minitorch.errors import DataError
from minitorch.trainer import TaskModule

X, Y = arrays(10)


class Sizes(Regression):
    """Keeps the first axis and the sum of every training batch."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.sums: list[float] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x = batch["x"] if isinstance(batch, dict) else batch[0]
        y = batch["y"] if isinstance(batch, dict) else batch[1]
        assert isinstance(x, mt.Tensor)
        self.sizes.append(x.shape[0])
        self.sums.append(float(x.sum()))
        return self.loss((x, y))


class Pairs(Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Any:
        return X[index], Y[index]


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(zip(X, Y, strict=True))


class Reiterable:
    def __iter__(self) -> Any:
        return iter([(X[:4], Y[:4]), (X[4:], Y[4:])])


FORMS: dict[str, tuple[Any, list[int]]] = {
    "loader": (DataLoader(Pairs(), 4), [4, 4, 2]),
    "arrays": ((X, Y), [4, 4, 2]),
    "float64 arrays": ((X.astype(np.float64), Y.astype(np.float64)), [4, 4, 2]),
    "tensors": ((mt.tensor(X), mt.tensor(Y)), [4, 4, 2]),
    "dict of arrays": ({"x": X, "y": Y}, [4, 4, 2]),
    "dataset": (Pairs(), [4, 4, 2]),
    "tensor dataset": (TensorDataset(mt.tensor(X), mt.tensor(Y)), [4, 4, 2]),
    "stream": (Stream(), [4, 4, 2]),
    "list of batches": ([(X[:6], Y[:6]), (X[6:], Y[6:])], [6, 4]),
    "iterable of batches": (Reiterable(), [4, 6]),
}


class Estimate(Stream):
    """A stream whose length is wrong."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


@pytest.mark.parametrize("length", [1, 6, 10, 40])
def test_streams_are_read_to_their_end(length: int) -> None:
    task, count = Sizes(), Count()
    stream = DataLoader(Estimate(length), 4)
    fit(task, stream, DataLoader(Estimate(length), 4), max_epochs=1, callbacks=count)
    assert task.sizes == [4, 4, 2]
    assert count.val == [3]
    assert fit(Sizes(), stream, max_epochs=1, limit_train_batches=2).global_step == 2


LISTS: dict[str, tuple[Any, list[int]]] = {
    "loaders": ([loader(4), loader(8)], [1, 2]),
    "loader and arrays": ([loader(8), (X, Y)], [2, 3]),
    "datasets": ([Pairs(), Pairs()], [3, 3]),
    "tuple": ((Stream(), loader(4)), [3, 1]),
    "one": ([loader(8)], [2]),
}


@pytest.mark.parametrize("case", LISTS)
@pytest.mark.parametrize("stage", ["fit", "validate"])
def test_lists_of_loaders_for_validation(case: str, stage: str) -> None:
    data, expected = LISTS[case]

    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            if not self.trainer.sanity_checking:
                counts[dataloader_idx] = batch_idx + 1

    counts: dict[int, int] = {}
    trainer = quiet(max_epochs=1)
    if stage == "fit":
        trainer.fit(Task(), loader(4), data, batch_size=4)
    else:
        trainer.validate(Task(), data, batch_size=4, verbose=False)
    assert list(counts.values()) == expected


WRONG_CONTAINERS: dict[str, tuple[Any, str]] = {
    "dict of lists": ({"a": [1.0]}, "dict of list"),
    "empty dict": ({}, "dict of nothing"),
    "dict with numbers": ({0: X}, "dict of ndarray"),
}


@pytest.mark.parametrize("case", WRONG_CONTAINERS)
def test_containers_that_are_no_batches_are_refused(case: str) -> None:
    data, what = WRONG_CONTAINERS[case]
    message = rf"train_dataloaders: data is .*Got a {what}. Make one iterable"
    with pytest.raises(DataError, match=message):
        fit(Regression(), data, max_epochs=1)
    with pytest.raises(DataError, match=rf"dataloaders: data is .*Got a {what}"):
        quiet().validate(Regression(), data, verbose=False)


@pytest.mark.parametrize("form", FORMS)
def test_accepted_forms(form: str) -> None:
    data, sizes = FORMS[form]
    task = Sizes()
    quiet(max_epochs=2).fit(task, data, batch_size=4)
    assert task.sizes == sizes * 2


def test_arrays_are_shuffled_anew_in_every_epoch_and_the_same_in_every_run() -> None:
    sums = []
    for _ in range(2):
        mt.manual_seed(5)
        task = Sizes()
        quiet(max_epochs=2).fit(task, (X, Y), batch_size=4)
        sums.append(task.sums)
    assert sums[0] == sums[1]
    first, second = sums[0][:3], sums[0][3:]
    assert first != second
    assert sum(first) == pytest.approx(X.sum(), rel=1e-4)
    assert first[0] != pytest.approx(X[:4].sum(), rel=1e-4)


def test_evaluation_data_keeps_its_order() -> None:
    predictions = quiet().predict(Regression(), X, batch_size=4)
    assert predictions is not None
    joined = mt.cat(predictions).numpy()
    module = Regression()
    module.load_state_dict(quietly_trained().state_dict())
    again = quiet().predict(module, X, batch_size=3)
    assert again is not None
    np.testing.assert_allclose(
        mt.cat(again).numpy(), module(mt.tensor(X)).detach().numpy(), rtol=1e-6
    )
    assert joined.shape == (10, 1)


def quietly_trained() -> Regression:
    task = Regression()
    fit(task, max_epochs=1)
    return task


def test_data_from_the_module() -> None:
    class Task(Regression):
        def train_dataloader(self) -> Any:
            return loader(8)

        def val_dataloader(self) -> Any:
            return loader(4)

        test_dataloader = val_dataloader

    trainer = quiet(max_epochs=1)
    result = trainer.fit(Task())
    assert result.global_step == 2
    assert list(result.history) == ["train/loss_step", "val/loss", "train/loss_epoch"]
    assert list(trainer.test(result.last)[0]) == ["test/loss"]


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Record:
    x: Any
    y: Any
    name: str = "n"


NESTED: dict[str, Any] = {
    "tuple": (X, Y),
    "list": [X, Y],
    "named tuple": Point(X, Y),
    "dict": {"x": X, "y": [Y, "text", 3]},
    "defaultdict": collections.defaultdict(list, x=X, y=[Y]),
    "data class": Record(X, Y),
    "deep": [{"a": (X, [Y])}, None],
}


@pytest.mark.parametrize("kind", NESTED)
def test_nested_batches_become_tensors_of_the_compute_dtype(kind: str) -> None:
    seen: list[Any] = []

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            seen.append(batch)
            return self.linear.weight.sum() + self.linear.bias.sum()

    batch = NESTED[kind]
    fit(Task(), [batch], max_epochs=1)
    assert type(seen[0]) is type(batch)
    found = _tensors(seen[0])
    assert [t.shape for t in found] == [(10, 3), (10, 1)]
    assert {t.dtype for t in found} == {mt.float32}


def _tensors(tree: Any) -> list[Any]:
    from minitorch.callbacks.core.nested import leaves

    return list(leaves(tree))


CASTS = {
    "float64": (np.float64, "32", mt.float32),
    "float32": (np.float32, "32", mt.float32),
    "float16": (np.float16, "32", mt.float32),
    "int64": (np.int64, "32", mt.int64),
    "uint8": (np.uint8, "32", mt.uint8),
    "bool": (np.bool_, "32", mt.bool_),
    "double": (np.float32, "64", mt.float64),
    "mixed": (np.float64, "bf16-mixed", mt.float32),
}


@pytest.mark.parametrize("case", CASTS)
def test_floats_are_cast_and_other_dtypes_stay(case: str) -> None:
    given, precision, expected = CASTS[case]
    seen: list[Any] = []

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            seen.append(batch)
            return self.linear.weight.sum() + self.linear.bias.sum()

    source = np.ones((4, 3), given)
    for batch in (source, mt.tensor(source)):
        fit(Task(), [batch], max_epochs=1, precision=precision)
    assert [t.dtype for t in seen] == [expected, expected]


def test_arrays_of_the_user_are_not_aliased() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            batch[0].add_(1.0)
            return self.linear.weight.sum() + self.linear.bias.sum()

    x = X.copy()
    fit(Task(), [(x, Y)], max_epochs=1)
    np.testing.assert_array_equal(x, X)


def test_transfer_hooks() -> None:
    class Task(Regression):
        def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            assert isinstance(batch[0], np.ndarray)
            return batch[0] * 2, batch[1]

        def on_after_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
            assert isinstance(batch[0], mt.Tensor)
            return batch[0] + 1, batch[1]

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            np.testing.assert_allclose(batch[0].numpy(), X * 2 + 1, rtol=1e-6)
            return self.loss(batch)

    fit(Task(), [(X, Y)], max_epochs=1)


def test_own_transfer_of_a_batch() -> None:
    class Pack:
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

    class Task(Regression):
        def transfer_batch_to_device(self, batch: Any, device: Any, dataloader_idx: int) -> Any:
            assert device == mt.device("cpu")
            if isinstance(batch, Pack):
                return super().transfer_batch_to_device((batch.x, batch.y), device, dataloader_idx)
            return super().transfer_batch_to_device(batch, device, dataloader_idx)

    assert fit(Task(), [Pack(X, Y), (X, Y)], max_epochs=1).global_step == 2


class Count(Callback):
    """Counts batches of every phase."""

    def __init__(self) -> None:
        self.train = self.sanity = 0
        self.val: list[int] = []
        self.at: list[int] = []

    def on_train_batch_end(self, *args: Any) -> None:
        self.train += 1

    def on_validation_start(self, trainer: Any, module: Any) -> None:
        if not trainer.sanity_checking:
            self.val.append(0)
            self.at.append(self.train)

    def on_validation_batch_end(self, trainer: Any, *args: Any) -> None:
        if trainer.sanity_checking:
            self.sanity += 1
        else:
            self.val[-1] += 1


# 6 training batches, 3 validation batches, 2 epochs
LIMITS: dict[str, tuple[dict[str, Any], int, list[int], int]] = {
    "all": ({}, 12, [3, 3], 2),
    "train count": ({"limit_train_batches": 2}, 4, [3, 3], 2),
    "train share": ({"limit_train_batches": 0.5}, 6, [3, 3], 2),
    "one is a count": ({"limit_train_batches": 1}, 2, [3, 3], 2),
    "val count": ({"limit_val_batches": 1}, 12, [1, 1], 1),
    "val share": ({"limit_val_batches": 0.7}, 12, [2, 2], 2),
    "no val": ({"limit_val_batches": 0}, 12, [], 0),
    "no val share": ({"limit_val_batches": 0.0}, 12, [], 0),
    "no sanity": ({"num_sanity_val_steps": 0}, 12, [3, 3], 0),
    "full sanity": ({"num_sanity_val_steps": -1}, 12, [3, 3], 3),
    "dev run": ({"fast_dev_run": True}, 1, [1], 0),
    "dev run of 2": ({"fast_dev_run": 2}, 2, [2], 0),
    "overfit": ({"overfit_batches": 2}, 4, [2, 2], 2),
    "steps": ({"max_steps": 7}, 7, [3], 2),
    "every second epoch": ({"check_val_every_n_epoch": 2}, 12, [3], 2),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits(case: str) -> None:
    options, train, val, sanity = LIMITS[case]
    count = Count()
    fit(Regression(), loader(), loader(12), **{"max_epochs": 2, **options}, callbacks=count)
    assert (count.train, count.val, count.sanity) == (train, val, sanity)


INTERVALS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "epoch": ({}, [6, 12]),
    "half": ({"val_check_interval": 0.5}, [3, 6, 9, 12]),
    "uneven share": ({"val_check_interval": 0.7}, [4, 10]),
    "batches": ({"val_check_interval": 4}, [4, 10]),
    "every batch": ({"val_check_interval": Batches(1)}, list(range(1, 13))),
    "across epochs": ({"val_check_interval": 4, "check_val_every_n_epoch": None}, [4, 8, 12]),
    "longer than an epoch": ({"val_check_interval": 8, "check_val_every_n_epoch": None}, [8]),
    "second epoch": ({"val_check_interval": 0.5, "check_val_every_n_epoch": 2}, [9, 12]),
}


@pytest.mark.parametrize("case", INTERVALS)
def test_when_validation_runs(case: str) -> None:
    options, expected = INTERVALS[case]
    count = Count()
    fit(Regression(), loader(), loader(4), max_epochs=2, callbacks=count, **options)
    assert count.at == expected


def test_validation_of_a_loader_without_length_runs_at_the_epochs_end() -> None:
    count = Count()
    fit(Regression(), Reiterable(), loader(4), max_epochs=2, callbacks=count)
    assert count.at == [2, 4]


def test_overfit_batches_are_always_the_same() -> None:
    task = Sizes()
    fit(task, loader(24), loader(12), max_epochs=3, overfit_batches=2)
    assert task.sums[:2] == task.sums[2:4] == task.sums[4:]


def test_skipping_the_rest_of_an_epoch() -> None:
    class Skip(Callback):
        def on_train_batch_start(
            self, trainer: Any, module: Any, batch: Any, batch_idx: int
        ) -> int | None:
            return -1 if batch_idx == 2 else None

    count = Count()
    result = fit(Regression(), loader(), loader(4), max_epochs=2, callbacks=[Skip(), count])
    assert (count.train, count.at, result.epochs) == (4, [2, 4], 2)


def test_step_without_batch_idx() -> None:
    class Task(Regression):
        def training_step(self, batch: Any) -> Any:  # type: ignore[override]
            return self.loss(batch)

        def validation_step(self, batch: Any) -> Any:  # type: ignore[override]
            self.log("val/loss", self.loss(batch))

    result = fit(Task(), loader(), loader(4), max_epochs=1)
    assert list(result.history) == ["val/loss"]


def test_lengths_that_callbacks_read() -> None:
    seen: list[Any] = []

    class Look(Callback):
        def on_train_start(self, trainer: Any, module: TaskModule) -> None:
            seen.append(
                (
                    trainer.num_training_batches,
                    trainer.num_val_batches,
                    trainer.num_sanity_val_batches,
                    trainer.estimated_stepping_batches,
                )
            )

    options: dict[str, Any] = {"max_epochs": 3, "accumulate_grad_batches": 4}
    fit(Regression(), loader(), loader(4), callbacks=Look(), **options)
    assert seen == [(6, [1], [1], 6)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_epochs": 2, "max_steps": 7}, 7),
        ({"max_epochs": 2}, float("inf")),
        ({"max_steps": 5}, 5),
    ],
)
def test_estimated_updates_without_a_length(options: dict[str, Any], expected: float) -> None:
    trainer = quiet(**options)
    trainer.fit(Regression(), Reiterable())
    assert trainer.estimated_stepping_batches == expected
