"""The examples in the docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

import minitorch as mt

LATE = "adadelta adafactor adamax asgd lbfgs lion nadam radam rprop sparse_adam swa_utils".split()
MODULES = [
    "minitorch.optim.sgd",
    "minitorch.optim.adam",
    "minitorch.optim.rmsprop",
    "minitorch.optim.adagrad",
    *[f"minitorch.optim.{name}" for name in LATE],
    "minitorch.optim.lr_scheduler.base",
    "minitorch.optim.lr_scheduler.warmup",
    "minitorch.nn.utils.clip_grad",
    "minitorch.amp.grad_scaler",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), extraglobs={"mt": mt})
    assert result.attempted
    assert not result.failed
