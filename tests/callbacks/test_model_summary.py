"""ModelSummary and summarize: counts, shapes, texts; and that nothing changes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Linear, fit

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import ModelSummary, RichModelSummary, summarize
from minitorch.errors import ArgumentError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 1000), nn.BatchNorm1d(1000), nn.ReLU())
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(1000, 3)
        self.scale = nn.Parameter(mt.ones(2))
        self.head.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.body(x))) * self.scale.sum()


GOLDEN = """\
name    type         parameters   trainable   FLOPs   in          out
---------------------------------------------------------------------------
body    Sequential       11,000      11,000    64 k   [4, 8]      [4, 1000]
drop    Dropout               0           0       0   [4, 1000]   [4, 1000]
head    Linear            3,003           0    24 k   [4, 1000]   [4, 3]
(own)   Parameter             2           2       0
---------------------------------------------------------------------------
14,005 parameters: 11,002 trainable, 3,003 frozen
56.02 kB of parameters, 8.008 kB of buffers
88 k FLOPs in a forward pass of the example"""


def test_golden_text() -> None:
    assert str(summarize(Net(), example_input=mt.zeros(4, 8))) == GOLDEN


def test_without_an_example_there_are_no_shapes() -> None:
    lines = str(summarize(Net())).splitlines()
    assert lines[0].split() == ["name", "type", "parameters", "trainable"]
    assert lines[2].split() == ["body", "Sequential", "11,000", "11,000"]


@pytest.mark.parametrize(
    ("depth", "names"),
    [
        (0, []),
        (1, ["body", "drop", "head", "(own)"]),
        (2, ["body", "body.0", "body.1", "body.2", "drop", "head", "(own)"]),
        (-1, ["body", "body.0", "body.1", "body.2", "drop", "head", "(own)"]),
    ],
)
def test_depth(depth: int, names: list[str]) -> None:
    summary = summarize(Net(), max_depth=depth)
    assert [row.name for row in summary.rows] == names
    assert (summary.parameters, summary.trainable) == (14005, 11002)


def test_shared_parameters_count_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(10, 4)
            self.out = nn.Linear(4, 10, bias=False)
            self.out.weight = self.embed.weight

    summary = summarize(Tied())
    assert summary.parameters == 40
    assert [row.parameters for row in summary.rows] == [40, 40]
    assert summary.parameter_bytes == 160


def test_nothing_changes() -> None:
    mt.manual_seed(0)
    net = Net()
    net.drop.eval()
    modes = [part.training for part in net.modules()]
    before = {name: value.numpy().copy() for name, value in net.state_dict().items()}
    state = mt.random.state_dict()
    summarize(net, example_input=mt.ones(4, 8))
    assert [part.training for part in net.modules()] == modes
    assert mt.random.state_dict() == state
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert all(p.grad is None for p in net.parameters())
    assert not any(part._hooks for part in net.modules() if part._hooks and not part._hooks.empty())


class Inputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pair = Pair()

    def forward(self, a: Any, b: Any = None) -> Any:
        return self.pair(a, a if b is None else b)


class Pair(nn.Module):
    def forward(self, a: Any, b: Any) -> Any:
        return {"sum": a + b, "both": [a, (b, 3)]}


@pytest.mark.parametrize(
    "example",
    [
        (mt.zeros(2, 3), mt.zeros(2, 3)),
        {"a": mt.zeros(2, 3), "b": mt.zeros(2, 3)},
        mt.zeros(2, 3),
        np.zeros((2, 3)),
    ],
    ids=["tuple", "dict", "tensor", "array"],
)
def test_forms_of_an_example(example: Any) -> None:
    [row] = summarize(Inputs(), example_input=example).rows
    assert row.in_size == "([2, 3], [2, 3])"
    assert row.out_size == "([2, 3], ([2, 3], ([2, 3], int)))"


def test_example_takes_the_dtype_of_the_weights() -> None:
    net = nn.Sequential(nn.Linear(8, 2)).double()
    [row] = summarize(net, example_input=mt.zeros(4, 8)).rows
    assert row.out_size == "[4, 2]"
    assert summarize(net).parameter_bytes == 8 * 18


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "4 B"), (300, "1.2 kB"), (10**6, "4 MB"), (3 * 10**8, "1.2 GB")],
)
def test_memory(count: int, text: str) -> None:
    from minitorch.callbacks.model_summary import Summary

    assert str(Summary((), count, count, 4 * count, 0)).endswith(f"\n{text} of parameters")


def test_callback_prints_when_a_fit_starts(capsys: pytest.CaptureFixture[str]) -> None:
    class Task(Linear):
        def __init__(self) -> None:
            super().__init__()
            self.example_input_array = mt.zeros(5, 2)

    fit(Task(), ModelSummary(), max_epochs=1)
    assert capsys.readouterr().out == (
        "name     type     parameters   trainable   FLOPs   in       out\n"
        "------------------------------------------------------------------\n"
        "linear   Linear            3           3      20   [5, 2]   [5, 1]\n"
        "------------------------------------------------------------------\n"
        "3 parameters: 3 trainable, 0 frozen\n"
        "12 B of parameters\n"
        "20 FLOPs in a forward pass of the example\n"
    )


def test_argument_of_the_trainer(capsys: pytest.CaptureFixture[str]) -> None:
    fit(Linear(), max_epochs=1, enable_model_summary=True)
    assert "3 parameters" in capsys.readouterr().out


def test_example_that_forward_refuses() -> None:
    message = r"forward pass must run on the example input.*Got \w+: .*Give one that forward"
    with pytest.raises(ArgumentError, match=message):
        summarize(Net(), example_input=mt.zeros(4, 9))


@pytest.mark.parametrize("depth", [-2, "2", True])
def test_wrong_depth(depth: Any) -> None:
    message = re.escape(f"max_depth must be an integer ≥ 0, or -1 for all. Got {depth!r}.")
    with pytest.raises(ArgumentError, match=message):
        fit(Linear(), ModelSummary(max_depth=depth), max_epochs=1)


def test_summary_draws_no_random_numbers() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 1)

        def forward(self, x: Any) -> Any:
            return self.linear(x) + mt.rand(1)

    module = Noisy()
    before = mt.random.state_dict()
    summarize(module, example_input=mt.ones(2, 3))
    assert mt.random.state_dict() == before


def test_in_richs_lines(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    task = Linear()
    task.example_input_array = mt.zeros(3, 2)
    fit(task, RichModelSummary(max_depth=2), max_steps=1)
    lines = capsys.readouterr().out.splitlines()
    assert "\x1b" not in "".join(lines)
    assert [cell.strip() for cell in re.split("[│┃]", lines[1])][1:-1] == [
        *["name", "type", "parameters", "trainable", "FLOPs", "in", "out"]
    ]
    assert [cell.strip() for cell in re.split("[│┃]", lines[3])][1:-1] == [
        *["linear", "Linear", "3", "3", "12", "[3, 2]", "[3, 1]"]
    ]
    assert "3 parameters: 3 trainable, 0 frozen" in lines


def test_totals_only_in_richs_lines(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    fit(Linear(), RichModelSummary(max_depth=0), max_steps=1)
    assert capsys.readouterr().out.startswith("3 parameters:")
