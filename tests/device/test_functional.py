"""The functions that layers are made of give on the device what they give on the CPU."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import all_rows
import nn_table
import pytest
from device_checks import (
    DEVICES,
    Costs,
    check_gradients,
    check_results,
    check_second_gradients,
)
from op_table import Row

import minitorch as mt


def _row(name: str, call: Any, *shapes: tuple[int, ...]) -> Row:
    return Row(f"F.{name}", lambda m, *xs: call(m.nn.functional, m, *xs), (shapes,))


def _seeded(function: Any, x: Any) -> Any:
    mt.manual_seed(0)
    return function(x)


def _statistics(f: Any, m: Any, x: Any, weight: Any, bias: Any) -> Any:
    mean, var = weight.detach() * 0, weight.detach() * 0 + 1
    return f.batch_norm(x, mean, var, weight, bias, training=True), mean, var


DRAWING = {
    "dropout": (3, 4),
    "dropout1d": (2, 3, 4),
    "dropout2d": (2, 3, 4, 4),
    "alpha_dropout": (3, 4),
    "gumbel_softmax": (3, 4),
}
MORE = [
    *[
        _row(name, lambda f, m, x, name=name: _seeded(getattr(f, name), x), shape)
        for name, shape in DRAWING.items()
    ],
    _row("batch_norm statistics", _statistics, (5, 3, 2), (3,), (3,)),
    _row("one_hot", lambda f, m, x: f.one_hot(m.tensor([2, 0, 1]), 4) * x, (3, 4)),
    _row(
        "cross_entropy ignored",
        lambda f, m, x: f.cross_entropy(x, m.tensor([2, -100, 1])),
        (3, 4),
    ),
    _row(
        "nll_loss of classes",
        lambda f, m, x: f.nll_loss(f.log_softmax(x, 1), m.tensor([2, 0, 1])),
        (3, 4),
    ),
    _row("masked_softmax", lambda f, m, x: f.masked_softmax(x, x.detach() > 0), (3, 4)),
]
ROWS = [*nn_table.ROWS, *MORE]
COSTS = Costs(
    {},
    {
        **{f"F.{name}": "the draws come from the host" for name in DRAWING},
        **{row.name: "weights of windows, once" for row in ROWS if "avg_pool" in row.name},
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


def test_every_function_has_a_row() -> None:
    rows = {row.name.split(" ")[0].removeprefix("F.") for row in [*ROWS, *all_rows.ROWS]}
    assert not [name for name in mt.nn.functional.__all__ if name not in rows]
