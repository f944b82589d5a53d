"""What a case of a pitfall is, and the small tasks that the cases are made of."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import nn
from minitorch.data import DataLoader, TensorDataset
from minitorch.nn import functional as F
from minitorch.trainer import FitResult, TaskModule, Trainer

CATALOGUE: dict[str, dict[str, str]] = tomllib.loads(
    (Path(__file__).parent / "catalogue.toml").read_text()
)
Program = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One program.

    Attributes:
        id: The pitfall.
        variant: "plain", or where the mistake hides; "good" for the twin that must stay silent.
        verdict: "IMPOSSIBLE", "ERROR", "WARN" or "SILENT".
        run: The program; one that cannot go wrong asserts its own numbers.
        message: Pattern of the error or warning.
    """

    id: str
    variant: str
    verdict: str
    run: Program
    message: str = ""


CASES: list[Case] = []


def _case(verdict: str, id: str, variant: str, message: str = "") -> Callable[[Program], Program]:
    assert id in CATALOGUE, id

    def add(program: Program) -> Program:
        CASES.append(Case(id, variant, verdict, program, message))
        return program

    return add


def impossible(id: str, variant: str = "plain") -> Callable[[Program], Program]:
    """A bad program that comes out right: it asserts so itself."""
    return _case("IMPOSSIBLE", id, variant)


def error(id: str, message: str, variant: str = "plain") -> Callable[[Program], Program]:
    """A bad program that ends with an error."""
    return _case("ERROR", id, variant, message)


def warns(id: str, message: str, variant: str = "plain") -> Callable[[Program], Program]:
    """A bad program that warns exactly once."""
    return _case("WARN", id, variant, message)


def good(id: str, variant: str = "good") -> Callable[[Program], Program]:
    """A program that looks like the bad one and is right."""
    return _case("SILENT", id, variant)


# Tasks and data.


class Regression(TaskModule):
    """Two layers, one output, mean squared error, SGD."""

    def __init__(self, lr: float = 0.05) -> None:
        super().__init__()
        self.save_hyperparameters()
        mt.manual_seed(1)
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Any) -> Any:
        return self.net(x)

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return F.mse_loss(self(x), y)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss(batch)
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("val/loss", self.loss(batch))

    def test_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("test/loss", self.loss(batch))

    def configure_optimizers(self) -> Any:
        return mt.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)


class Classifier(Regression):
    """The same with four classes and cross-entropy."""

    def __init__(self, lr: float = 0.05) -> None:
        super().__init__(lr)
        self.net[2] = nn.Linear(8, 4)

    def loss(self, batch: Any) -> Any:
        x, y = batch
        return F.cross_entropy(self(x), y)


def arrays(n: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Float32 inputs [n,3] and targets [n,1]."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    return x, x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.1


def classes(n: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Float32 inputs [n,3] and classes [n] from 0 to 3."""
    x, _ = arrays(n)
    return x, (np.arange(n) * 7 % 4).astype(np.int64)


def loader(data: Any = None, batch_size: int = 4, **options: Any) -> Any:
    """A loader over arrays, in stored order unless told otherwise."""
    options.setdefault("shuffle", False)
    data = arrays() if data is None else data
    return DataLoader(TensorDataset(*map(mt.from_numpy, data)), batch_size, **options)


def quiet(**options: Any) -> Trainer:
    """A Trainer without a progress bar."""
    options.setdefault("enable_progress_bar", False)
    options.setdefault("max_epochs", 1)
    return Trainer(**options)


def fit(
    task: TaskModule, train: Any = None, val: Any = None, *, ckpt_path: Any = None, **options: Any
) -> FitResult:
    """One fit, in a fixed order over the default data."""
    data = train
    if data is None:
        data = loader(classes() if isinstance(task, Classifier) else None)
    return quiet(**options).fit(task, data, val, ckpt_path=ckpt_path)


def weights(task: TaskModule) -> dict[str, np.ndarray]:
    """Copies of all parameters and buffers."""
    return {k: np.array(v.detach().cpu().numpy()) for k, v in task.state_dict().items()}


def trained(task: TaskModule, *data: Any, **options: Any) -> dict[str, np.ndarray]:
    """The weights after one fit."""
    fit(task, *data, **options)
    return weights(task)


def assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray], rtol: float = 0.0) -> None:
    """Equal names and values, to the bit unless a tolerance is given."""
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_allclose(value, b[name], rtol=rtol, atol=rtol, err_msg=name)


def steps(function: Program, base: type[TaskModule] = Regression, **more: Any) -> TaskModule:
    """A task with this training_step (and other methods)."""
    return type("Task", (base,), {"training_step": function, **more})()
