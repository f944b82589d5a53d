"""The examples in the docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib

import pytest

import minitorch as mt

MODULES = [
    "minitorch.optim.sgd",
    "minitorch.optim.adam",
    "minitorch.optim.rmsprop",
    "minitorch.optim.adagrad",
    "minitorch.optim.lr_scheduler.base",
    "minitorch.nn.utils.clip_grad",
    "minitorch.amp.grad_scaler",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), extraglobs={"mt": mt})
    assert result.attempted
    assert not result.failed
