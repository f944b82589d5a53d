"""The graph that loggers draw."""

from __future__ import annotations

from typing import Any

import pytest
from toy_tasks import Regression, loader, quiet

import minitorch as mt
from minitorch import nn
from minitorch.errors import TrainerError
from minitorch.trainer.graph import trace


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head = nn.Linear(4, 1)

    def forward(self, x: Any, scale: Any) -> Any:
        return self.head(self.body(x)) * scale


@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_nodes_are_named_by_module_and_joined(form: str) -> None:
    args = {"x": mt.zeros(2, 3), "scale": mt.ones(1)}
    model = Two()
    graph = trace(model, args if form == "dict" else tuple(args.values()))
    nodes = {node.name: node for node in graph.nodes}
    assert len(nodes) == len(graph.nodes)
    assert {n for n, node in nodes.items() if node.op == "parameter"} == {
        "body/0/weight",
        "body/0/bias",
        "head/weight",
        "head/bias",
    }
    assert {n for n, node in nodes.items() if node.op == "input"} == {"input_0", "input_1"}
    seen: set[str] = set()
    for node in graph.nodes:  # inputs come first
        assert set(node.inputs) <= seen
        seen.add(node.name)
    last = graph.nodes[-1]
    assert last.op == "mul"
    assert "input_1" in last.inputs
    assert nodes["head/weight"].attrs == {"type": "f32[1,4]"}
    assert any(name.startswith("body/0/") and node.op == "linear" for name, node in nodes.items())
    assert all(part.training for part in model.modules())


class Drawer:
    """A logger that wants the graph."""

    wants_graph = True

    def __init__(self) -> None:
        self.graph: Any = None

    def log_graph(self, graph: Any) -> None:
        self.graph = graph

    def log_metrics(self, metrics: Any, step: int) -> None: ...

    def log_hyperparams(self, params: Any) -> None: ...

    def save(self) -> None: ...

    def finalize(self, status: str) -> None: ...


def test_graph_is_logged_when_a_logger_wants_it() -> None:
    task, drawer = Regression(), Drawer()
    task.example_input_array = mt.zeros(2, 3)
    quiet(max_epochs=1, logger=drawer).fit(task, loader())
    assert "linear/weight" in {node.name for node in drawer.graph.nodes}


def test_graph_needs_an_example() -> None:
    drawer = Drawer()
    with pytest.raises(TrainerError, match=r"log_graph.*Set self.example_input_array"):
        quiet(logger=drawer).fit(Regression(), loader())
