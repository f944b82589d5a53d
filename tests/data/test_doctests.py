"""The examples in the docstrings."""

import doctest
import importlib

import pytest

import minitorch as mt


@pytest.mark.parametrize(
    "name", ["collate", "dataset", "datasets.texts", "distributed", "loader", "split"]
)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"minitorch.data.{name}")
    result = doctest.testmod(module, extraglobs={"mt": mt})
    assert result.attempted
    assert not result.failed
