"""A task with batch normalisation and dropout, and ways to look at weights, cut and resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Linear, fit

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback, Order


class Normed(Linear):
    """Normalisation and dropout ahead of the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.drop = nn.Dropout(0.2)

    def forward(self, x: Any) -> Any:
        return self.linear(self.drop(self.norm(x)))


class SaveAndDie(Callback):
    """Saves after a number of batches, when all other callbacks have, and ends the process."""

    order = Order.PERSIST

    def __init__(self, batches: int, path: Path) -> None:
        self.batches = batches
        self.path = path

    def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
        if trainer.position.batches == self.batches:
            trainer.save_checkpoint(self.path)
            raise ZeroDivisionError


def values(module: Any) -> dict[str, np.ndarray]:
    """Copies of a module's state."""
    return {name: np.array(value.detach().numpy()) for name, value in module.state_dict().items()}


def assert_equal(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    """Same names and bits."""
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name], err_msg=name)


def check_resumes(task: Any, make: Any, tmp_path: Path, cuts: Any, **options: Any) -> Any:
    """Compares runs that were cut after some batches with one that was not.

    Args:
        task: Makes the module.
        make: Makes the callback.
        tmp_path: For the checkpoint.
        cuts: Numbers of batches.
        options: Of the Trainer.

    Returns:
        The callback of the whole run.
    """
    options = {"max_epochs": 4, "log_every_n_steps": 1, **options}
    mt.manual_seed(1)
    module, whole = task(), make()
    result = fit(module, whole, **options)
    for cut in cuts:
        mt.manual_seed(1)
        die = SaveAndDie(cut, tmp_path / "cut")
        with pytest.raises(ZeroDivisionError):
            fit(task(), make(), die, **options)
        mt.manual_seed(2)
        again, callback = task(), make()
        resumed = fit(again, callback, ckpt=tmp_path / "cut", **options)
        assert_equal(values(again), values(module))
        assert resumed.history == result.history, f"after batch {cut}"
    return whole
