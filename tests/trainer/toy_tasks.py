"""Tasks that train in milliseconds, and a Trainer that prints nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

import minitorch as mt
from minitorch import nn
from minitorch.data import DataLoader, TensorDataset
from minitorch.trainer import FitResult, TaskModule, Trainer


class Regression(TaskModule):
    """Linear regression with dropout, momentum and logged losses."""

    def __init__(self, lr: float = 0.05, dropout: float = 0.0) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.linear = nn.Linear(3, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Any) -> Any:
        return self.linear(self.dropout(x))

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return ((self(x) - y) ** 2).mean()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        self.log("train/loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("val/loss", self.loss(batch))

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("test/loss", self.loss(batch))

    def configure_optimizers(self) -> Any:
        return mt.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


def arrays(n: int = 24, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Float32 data of a linear relation."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.1
    return x, y


def loader(n: int = 24, batch_size: int = 4, *, shuffle: bool = True, **options: Any) -> Any:
    """A DataLoader over `arrays`."""
    dataset = TensorDataset(*[mt.from_numpy(a) for a in arrays(n)])
    return DataLoader(dataset, batch_size, shuffle=shuffle, **options)


def quiet(**options: Any) -> Trainer:
    """A Trainer without a progress bar that logs every step."""
    options.setdefault("enable_progress_bar", False)
    options.setdefault("log_every_n_steps", 1)
    return Trainer(**options)


def fit(task: TaskModule, train: Any = None, val: Any = None, **options: Any) -> FitResult:
    """One fit with a quiet Trainer."""
    return quiet(**options).fit(task, loader() if train is None else train, val)


def weights(task: TaskModule) -> dict[str, np.ndarray]:
    """All parameters and buffers as arrays."""
    return {name: value.detach().cpu().numpy().copy() for name, value in task.state_dict().items()}
