"""Tasks whose metrics follow a script, and Trainers that print nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback
from minitorch.data import DataLoader, TensorDataset
from minitorch.trainer import FitResult, TaskModule, Trainer

BATCHES = 4


class Linear(TaskModule):
    """A regression on four batches an epoch, with an ordinary loss and validation loss."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 1)

    def forward(self, x: Any) -> Any:
        return self.linear(x)

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return ((self(x) - y) ** 2).mean()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("val/loss", self.loss(batch))

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        return self(batch[0])

    test_step = validation_step

    def configure_optimizers(self) -> Any:
        return mt.optim.SGD(self.parameters(), lr=0.01, momentum=0.5)


class Scripted(Linear):
    """Logs one score from a list in each validation: "val/score".

    Args:
        scores: One for each validation that is no sanity check; the last one repeats.
    """

    def __init__(self, scores: list[float]) -> None:
        super().__init__()
        self.scores = scores
        self.validations = 0

    def on_validation_epoch_end(self) -> None:
        self.log("val/score", self.scores[min(self.validations, len(self.scores) - 1)])
        if not self.trainer.sanity_checking:
            self.validations += 1

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["validations"] = self.validations

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.validations = checkpoint["validations"]


def loader(batches: int = BATCHES, *, shuffle: bool = False) -> DataLoader:
    """Batches of two samples."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * batches, 2)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0]], np.float32)
    return DataLoader(TensorDataset(mt.tensor(x), mt.tensor(y)), 2, shuffle=shuffle)


def quiet(*callbacks: Callback, **options: Any) -> Trainer:
    """A Trainer without a progress bar."""
    options.setdefault("enable_progress_bar", False)
    return Trainer(callbacks=list(callbacks), **options)


def fit(task: TaskModule, *callbacks: Callback, ckpt: Any = None, **options: Any) -> FitResult:
    """One fit on four training batches and one validation batch."""
    trainer = quiet(*callbacks, **options)
    return trainer.fit(task, loader(), loader(1), ckpt_path=ckpt)


class Spy(Callback):
    """Keeps what a function of the trainer returns, at an event.

    Args:
        event: Name of the event.
        look: Called with the trainer.
    """

    def __init__(self, event: str, look: Any) -> None:
        self.seen: list[Any] = []
        setattr(self, event, lambda trainer, module, *args: self.seen.append(look(trainer)))


class Fails(Callback):
    """Raises at the n-th time that an event fires.

    Args:
        event: Name of the event.
        n: Counted from 1; the sanity check does not count.
        error: What is raised.
    """

    def __init__(self, event: str, n: int, error: BaseException) -> None:
        self.count = 0

        def method(trainer: Any, module: Any, *args: Any) -> None:
            self.count += not trainer.sanity_checking
            if self.count == n:
                raise error

        setattr(self, event, method)
