"""Losses, attention and recurrent layers that load late give on the device what the CPU gives."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
from device_checks import (
    DEVICES,
    Costs,
    check_gradients,
    check_results,
    check_second_gradients,
)
from op_table import Row

FILES = ["attention", "ctc", "embeddings", "nn_losses", "recurrent"]
ROWS = [row for file in FILES for row in importlib.import_module(f"rows.{file}").ROWS]
PAIRS = "the numbers of the pairs"
SIZES = "the row brings its batch sizes to the CPU, where they belong"
LABELS = "labels and lengths are looked at on the host"
COUNTS = "the shape of the result depends on the values"
COSTS = Costs(
    {
        **{row.name: SIZES for row in ROWS if " packed" in row.name},
        **{row.name: LABELS for row in ROWS if "ctc" in row.name},
        **{row.name: COUNTS for row in ROWS if "frequencies" in row.name or " max" in row.name},
    },
    {
        "F.pdist": PAIRS,
        "F.pdist 3": PAIRS,
        **{row.name: LABELS for row in ROWS if "ctc" in row.name},
    },
)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_results_equal_the_cpus(row: Row, device: str, pretend_gpu: ModuleType) -> None:
    check_results(row, device, pretend_gpu, COSTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_gradients_equal_the_cpus(row: Row, pretend_gpu: ModuleType) -> None:
    check_gradients(row, pretend_gpu, COSTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.usefixtures("pretend_gpu")
def test_second_gradients_equal_the_cpus(row: Row) -> None:
    check_second_gradients(row)
