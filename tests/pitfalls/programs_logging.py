"""Programs about the values that a run shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Classifier, Regression, arrays, classes, fit, good, impossible, loader, quiet

import minitorch as mt
from minitorch.callbacks import ModelCheckpoint
from minitorch.metrics import AUROC, F1Score
from minitorch.metrics.functional import f1_score

X, Y = classes(26)


def exact(task: Any) -> float:
    """The F1 over all samples at once."""
    with mt.no_grad():
        scores = task(mt.from_numpy(X))
    return float(f1_score(scores, mt.from_numpy(Y), num_classes=4, average="macro"))


class F1(Classifier):
    """Logs the F1 of each batch, as a number."""

    def score(self, batch: Any) -> Any:
        return f1_score(self(batch[0]), batch[1], num_classes=4, average="macro")

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("f1", self.score(batch))


def last(task: Any, name: str, **options: Any) -> float:
    return fit(task, loader((X, Y)), loader((X, Y), 7), **options).history[name][-1][1]


@impossible("metric-mean-of-batches")
def _() -> None:
    task = F1()
    assert last(task, "f1") == exact(task)


@impossible("metric-mean-of-batches", "item of the result")
def _() -> None:
    class Item(F1):
        def score(self, batch: Any) -> Any:
            return super().score(batch).item()

    task = Item()
    assert last(task, "f1") == exact(task)


@impossible("metric-mean-of-batches", "called object, its value logged")
def _() -> None:
    class Called(F1):
        def __init__(self) -> None:
            super().__init__()
            self.f1 = F1Score(num_classes=4, average="macro")

        def score(self, batch: Any) -> Any:
            return self.f1(self(batch[0]), batch[1])

    task = Called()
    assert last(task, "f1", num_sanity_val_steps=0) == exact(task)


@impossible("metric-mean-of-batches", "in training, AUROC")
def _() -> None:
    class Binary(Regression):
        seen: list[Any] = []

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            scores = self(batch[0]).detach()[:, 0].sigmoid()
            target = (batch[1][:, 0] > 0).long()
            self.seen.append((scores, target))
            self.log("auroc", AUROC("binary")(scores, target), on_step=False, on_epoch=True)
            return self.loss(batch)

    Binary.seen = []
    result = fit(Binary(), loader(batch_size=12, spread_last=True))
    scores, target = (mt.cat(parts) for parts in zip(*Binary.seen, strict=True))
    whole = AUROC("binary")
    whole.update(scores, target)
    assert result.history["auroc"][-1][1] == whole.compute().item()


@good("metric-mean-of-batches")
def _() -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("mean", batch[1].mean())

    x, y = arrays(10)
    result = fit(Task(), loader((x, y)), loader((x, y), 4))
    np.testing.assert_allclose(result.history["mean"][-1][1], y.mean(), rtol=1e-5)


@impossible("log-last-batch-as-epoch")
def _() -> None:
    losses: list[float] = []

    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = self.loss(batch)
            losses.append(loss.item())
            self.log("train/loss", loss)
            return loss

    result = fit(Task(), log_every_n_steps=1)
    np.testing.assert_allclose(result.history["train/loss_epoch"][-1][1], np.mean(losses))
    assert result.history["train/loss"][-1][1] == losses[-1]


@impossible("log-last-batch-as-epoch", "as a monitor")
def _() -> None:
    keeper = ModelCheckpoint(".", monitor="train/loss", mode="min", save_on_train_epoch_end=True)
    result = quiet(callbacks=[keeper]).fit(Regression(), loader())
    assert result.best is not None
    assert result.best.score == result.history["train/loss_epoch"][-1][1]


@good("log-last-batch-as-epoch")
def _() -> None:
    class Task(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("now", batch_idx * 1.0, on_step=True, on_epoch=False)
            return self.loss(batch)

        def on_train_epoch_end(self) -> None:
            self.log("now_epoch", 7.0)

    result = fit(Task(), log_every_n_steps=1)
    assert [value for _, value in result.history["now_epoch"]] == [7.0]
