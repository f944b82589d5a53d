"""A batch that ran in parts is logged as the one batch that it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_metric_objects import root
from toy_tasks import Regression, arrays, fit

import minitorch as mt
from minitorch import metrics as M
from minitorch.callbacks import Callback

SIZES = [5, 3, 7]
FITS = 3
VALUES = {
    "mean": ("mean", lambda y: float(y.mean())),
    "sum": ("sum", lambda y: float(y.sum())),
    "max": ("max", lambda y: float(y.max())),
    "min": ("min", lambda y: float(y.min())),
}


def data() -> list[Any]:
    x, y = arrays(sum(SIZES))
    ends = np.cumsum(SIZES)
    return [(x[e - n : e], y[e - n : e]) for e, n in zip(ends, SIZES, strict=True)]


class Logs(Regression):
    """Logs every kind of value; more than `FITS` samples do not fit."""

    fits = FITS

    def __init__(self) -> None:
        mt.manual_seed(2)
        super().__init__()
        self.error = M.MeanSquaredError(squared=False)
        self.other = M.MeanSquaredError(squared=False)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        _, y = batch
        if len(y) > self.fits:
            raise MemoryError("no room")
        for name, (reduce, measure) in VALUES.items():
            self.log(name, measure(y), reduce_fx=reduce)
            self.log(f"{name} of a tensor", getattr(y, name)(), reduce_fx=reduce)
        self.log("twice", -1.0)
        self.log("twice", float(y.mean()), on_epoch=False)
        self.log("by square", float(len(y)), batch_size=len(y) ** 2)
        self.error(y * 2, y)
        self.log("object", self.error)
        self.log("result", self.other(y * 2, y))
        if len(y) == 1:
            self.log("rare", 3.0)
        loss = self.loss(batch)
        self.log("loss", loss)
        return {"loss": loss, "share": float(y.mean()), "samples": len(y)}


class Keep(Callback):
    def __init__(self) -> None:
        self.outputs: list[Any] = []

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *rest: Any) -> None:
        self.outputs.append(outputs)


def run(task: Any, **options: Any) -> tuple[Any, list[Any]]:
    keep = Keep()
    options = {"on_out_of_memory": "split", "max_epochs": 1, **options}
    return fit(task, data(), callbacks=keep, **options).history, keep.outputs


def points(history: Any, name: str) -> list[float]:
    return [value for _, value in history[name]]


@pytest.mark.parametrize("accelerator", ["cpu", "gpu"])
def test_step_values_are_those_of_the_whole_batch(accelerator: str, request: Any) -> None:
    if accelerator == "gpu":
        request.getfixturevalue("pretend_gpu")
    history, outputs = run(Logs(), accelerator=accelerator)
    targets = [y for _, y in data()]
    for name, (_, measure) in VALUES.items():
        right = pytest.approx([measure(y) for y in targets], rel=1e-5)
        assert points(history, name) == right, name
        assert points(history, f"{name} of a tensor") == right, name
    assert points(history, "twice") == pytest.approx([y.mean() for y in targets], rel=1e-5)
    for name in ("object", "result"):
        assert points(history, name) == pytest.approx([root([y]) for y in targets], rel=1e-5)
        assert points(history, f"{name}_epoch") == pytest.approx([root(targets)], rel=1e-5)
    squares = [(27 + 8) / (9 + 4), 3.0, (27 + 27 + 1) / (9 + 9 + 1)]
    assert points(history, "by square") == pytest.approx(squares)
    assert history["rare"] == [(3, 3.0)]
    losses = [out["loss"].item() for out in outputs]
    assert points(history, "loss") == pytest.approx(losses, rel=1e-5)
    assert [out["share"] for out in outputs] == pytest.approx([y.mean() for y in targets])


def test_the_loss_is_that_of_a_batch_that_fits() -> None:
    class Roomy(Logs):
        fits = 100

    ours, theirs = run(Logs()), run(Roomy())
    for name in ("loss", "loss_epoch"):
        assert points(ours[0], name) == pytest.approx(points(theirs[0], name), rel=1e-4)


def test_nan_is_seen_in_any_part() -> None:
    class Bad(Logs):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = super().training_step(batch, batch_idx)
            for how in VALUES:
                value = float("nan") if len(batch[1]) == 2 else 1.0
                self.log(f"bad {how}", value, reduce_fx=how)
            return loss

    history, _ = run(Bad())
    for how in VALUES:
        assert np.isnan(points(history, f"bad {how}")[0]), how
        assert points(history, f"bad {how}")[1] == 1.0


def test_parts_that_failed_are_forgotten() -> None:
    class Late(Logs):
        """Its second part does not fit either, and the batch begins again in smaller ones."""

        seen = 0

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("samples", float(len(batch[1])), reduce_fx="sum")
            self.seen += 1
            if self.seen == 3:
                raise MemoryError("no room")
            return super().training_step(batch, batch_idx)

    history, _ = run(Late())
    assert points(history, "samples") == [5.0, 3.0, 7.0]
