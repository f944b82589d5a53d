"""self.log of metric objects: exact over the epoch, reset at its end, resumed in its middle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, fit, loader, quiet

import minitorch as mt
from minitorch import metrics as M
from minitorch.callbacks import Callback
from minitorch.errors import TrainerError

SIZES = [4, 2, 1]


def data() -> list[Any]:
    x, y = arrays(7)
    ends = np.cumsum(SIZES)
    return [(x[e - n : e], y[e - n : e]) for e, n in zip(ends, SIZES, strict=True)]


class Measured(Regression):
    """Logs a root mean square, which no mean of batches gives."""

    def __init__(self, call: bool = False, **options: Any) -> None:
        super().__init__()
        self.call = call
        self.options = options
        self.error = M.MeanSquaredError(squared=False)
        self.others = {"val": M.MeanSquaredError(squared=False)}
        self.seen: list[Any] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        _, y = batch
        (self.error if self.call else self.error.update)(y * 2, y)
        self.log("rms", self.error, **self.options)
        self.seen.append(y)
        return self.loss(batch)

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        _, y = batch
        self.others["val"].update(y * 3, y)
        self.log("val/rms", self.others["val"])


def root(parts: list[Any], factor: float = 1.0) -> float:
    flat = np.concatenate([np.asarray(p).reshape(-1) for p in parts]).astype(np.float64)
    return float(np.sqrt((factor**2 * flat**2).mean()))


def test_epochs_are_exact_and_start_anew() -> None:
    task = Measured(on_step=False, on_epoch=True)
    result = fit(task, data(), data(), max_epochs=2)
    targets = [y for _, y in data()]
    assert [step for step, _ in result.history["rms"]] == [3, 6]
    assert [v for _, v in result.history["rms"]] == pytest.approx([root(targets)] * 2, rel=1e-6)
    assert [v for _, v in result.history["val/rms"]] == pytest.approx(
        [root(targets, 2.0)] * 2, rel=1e-6
    )
    assert task.error.updates == 0


def test_steps_are_those_of_the_batch() -> None:
    task = Measured(call=True, on_step=True, on_epoch=True)
    result = fit(task, data(), max_epochs=1, log_every_n_steps=1)
    targets = [y for _, y in data()]
    assert [v for _, v in result.history["rms_step"]] == pytest.approx(
        [root([y]) for y in targets], rel=1e-6
    )
    assert [v for _, v in result.history["rms_epoch"]] == pytest.approx([root(targets)], rel=1e-6)


def test_results_and_items_are_exact_and_pythons_float_is_a_plain_number() -> None:
    kinds = {"result": lambda r: r, "item": lambda r: r.item(), "float": float}

    class Results(Measured):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            _, y = batch
            for name, kind in kinds.items():
                value = kind(M.MeanSquaredError(squared=False)(y * 2, y))
                assert type(value) is not float or name == "float"
                self.log(name, value, on_epoch=True)
            return self.loss(batch)

    history = fit(Results(), data(), max_epochs=1).history
    targets = [y for _, y in data()]
    mean = sum(root([y]) * len(y) for y in targets) / sum(SIZES)
    right = {"result": root(targets), "item": root(targets), "float": mean}
    assert root(targets) != pytest.approx(mean, rel=1e-3)
    for name, value in right.items():
        assert history[f"{name}_epoch"][0][1] == pytest.approx(value, rel=1e-6), name


def test_steps_alone_reset_at_the_end_too() -> None:
    task = Measured(call=True)
    fit(task, data(), max_epochs=1, log_every_n_steps=1)
    assert task.error.updates == 0


def test_logged_at_the_end_of_the_epoch() -> None:
    class Late(Measured):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.others["val"].update(batch[1] * 3, batch[1])

        def on_validation_epoch_end(self) -> None:
            self.log("val/rms", self.others["val"])

    result = fit(Late(on_step=False, on_epoch=True), data(), data(), max_epochs=2)
    expected = root([y for _, y in data()], 2.0)
    assert [v for _, v in result.history["val/rms"]] == pytest.approx([expected] * 2, rel=1e-6)


@pytest.mark.parametrize("on_step", [False, True])
def test_one_object_measures_several_loaders_one_after_the_other(on_step: bool) -> None:
    class Several(Measured):
        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            error = self.others["val"]
            error.update(batch[1] * (2 + dataloader_idx), batch[1])
            self.log("val/rms", error, on_epoch=True)

    task = Several(on_step=on_step, on_epoch=True, call=on_step)
    loaders = [loader(8), loader(12)]
    result = fit(task, data(), loaders, max_epochs=2)
    for index, held_out in enumerate(loaders):
        expected = root([y for _, y in held_out], 1.0 + index)
        values = [v for _, v in result.history[f"val/rms/dataloader_idx_{index}"]]
        assert values == pytest.approx([expected] * 2, rel=1e-6)
    assert task.others["val"].updates == 0


class SaveAt(Callback):
    """Saves after an update in the middle of an epoch."""

    def __init__(self, path: Path, step: int) -> None:
        self.path, self.step = path, step

    def on_train_batch_end(
        self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if trainer.global_step == self.step:
            trainer.save_checkpoint(self.path)


@pytest.mark.parametrize("step", [1, 2, 4])
def test_a_run_resumes_inside_of_an_epoch(step: int, tmp_path: Path) -> None:
    path = tmp_path / "middle.ckpt"
    options: dict[str, Any] = {"on_step": False, "on_epoch": True}
    saver = SaveAt(path, step)
    whole = fit(Measured(**options), data(), data(), max_epochs=2, callbacks=[saver])
    trainer = quiet(max_epochs=2, callbacks=[SaveAt(path, -1)])
    again = trainer.fit(Measured(**options), data(), data(), ckpt_path=path)
    assert again.history == whole.history


WRONG: dict[str, tuple[type[Exception], str]] = {
    "two names": (TrainerError, "a metric object has one name.*Got that of 'rms'"),
    "two objects": (TrainerError, "one metric object stands behind a name"),
    "only updated": (TrainerError, r"Call it \(metric\(preds, target\)\)"),
    "vector": (mt.ArgumentError, "a number or a tensor with one element"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes(mistake: str) -> None:
    class Wrong(Measured):
        matrix = M.ConfusionMatrix(num_classes=2)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if mistake == "only updated":
                self.error.update(batch[1], batch[1])
                self.log("rms", self.error)
            elif mistake == "vector":
                self.matrix.update(mt.tensor([0, 1]), mt.tensor([0, 1]))
                self.log("matrix", self.matrix, on_step=False, on_epoch=True)
            else:
                loss = super().training_step(batch, batch_idx)
                twice = mistake == "two names"
                source = self.error if twice else self.others["val"]
                self.log("other" if twice else "rms", source, on_step=False, on_epoch=True)
                return loss
            return self.loss(batch)

    error, text = WRONG[mistake]
    with pytest.raises(error, match=text):
        fit(Wrong(on_step=False, on_epoch=True), data(), max_epochs=1)
