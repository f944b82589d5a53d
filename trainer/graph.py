"""The operations of a model as a neutral list, for loggers that draw them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minitorch import Tensor, enable_grad, random
from minitorch.autograd.node import Node, next_sequence
from minitorch.callbacks.core.nested import leaves, map_leaves
from minitorch.errors import TrainerError, describe
from minitorch.nn.modes import evaluating

if TYPE_CHECKING:
    from minitorch.nn import Module


@dataclass(frozen=True)
class GraphNode:
    """One operation, parameter or input.

    Attributes:
        name: Unique; the path of its module and its number, with "/" between the levels.
        op: Kind of operation, "parameter" or "input".
        inputs: Names of the nodes that it reads.
        attrs: Texts to show with it.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    attrs: Mapping[str, str]


@dataclass(frozen=True)
class Graph:
    """A model's operations, inputs first."""

    nodes: tuple[GraphNode, ...]


def trace(module: Module, example: Any) -> Graph:
    """Runs `forward` once, in eval mode, and lists what it recorded.

    Args:
        module: The model.
        example: Input of forward: a tensor, a tuple of arguments, or a dict of keyword arguments.

    Raises:
        TrainerError: There is no example.
    """
    if example is None:
        raise TrainerError(
            "log_graph: the graph is drawn from one forward pass and needs an input for it. Got "
            "none. Set self.example_input_array = minitorch.zeros(...) in the module."
        )
    example = map_leaves(example, _tracked)
    with enable_grad(), evaluating(module), random.fork_rng():
        output, spans = _watched(module, example)
    names = {id(p): f"{path.replace('.', '/')}" for path, p in module.named_parameters()}
    names |= {id(leaf): f"input_{i}" for i, leaf in enumerate(leaves(example))}
    return Graph(tuple(_list(output, names, spans)))


def _tracked(leaf: Tensor) -> Tensor:
    """A copy that shows up in the graph."""
    copy = leaf.detach().clone()
    return copy.requires_grad_() if copy.is_floating_point() else copy


def _call(module: Module, example: Any) -> Any:
    if isinstance(example, tuple):
        return module(*example)
    return module(**example) if isinstance(example, Mapping) else module(example)


def _watched(module: Module, example: Any) -> tuple[Any, list[tuple[int, int, str]]]:
    """The output, and for each call of a submodule the range of its operations' numbers."""
    spans: list[tuple[int, int, str]] = []
    starts: list[int] = []
    handles = []
    for path, part in module.named_modules():

        def after(part: Any, args: Any, output: Any, path: str = path) -> None:
            spans.append((starts.pop(), next_sequence(), path))

        handles.append(part.register_forward_pre_hook(lambda *_: starts.append(next_sequence())))
        handles.append(part.register_forward_hook(after))
    try:
        return _call(module, example), spans
    finally:
        for handle in handles:
            handle.remove()


def _list(output: Any, names: dict[int, str], spans: list[tuple[int, int, str]]) -> list[GraphNode]:
    found: dict[int, Node | Tensor] = {}
    waiting: list[Any] = [leaf.grad_fn for leaf in leaves(output)]
    while waiting:
        item = waiting.pop()
        if item is None or id(item) in found:
            continue
        found[id(item)] = item
        if isinstance(item, Node):
            waiting.extend(item.edges or ())
    operations = [item for item in found.values() if isinstance(item, Node)]
    operations.sort(key=lambda node: node.sequence)
    for number, node in enumerate(operations):
        path = _owner(node.sequence, spans).replace(".", "/")
        names[id(node)] = "/".join(filter(None, (path, f"{node.op.name}_{number}")))
    nodes = [
        GraphNode(names.get(key, f"constant_{key}"), _kind(key, names), (), {"type": describe(t)})
        for key, t in found.items()
        if isinstance(t, Tensor)
    ]
    for node in operations:
        inputs = [names.get(id(e), f"constant_{id(e)}") for e in node.edges or () if e is not None]
        attrs = {key: str(value)[:80] for key, value in node.params.items()}
        nodes.append(GraphNode(names[id(node)], node.op.name, tuple(inputs), attrs))
    return nodes


def _kind(key: int, names: dict[int, str]) -> str:
    return "input" if names.get(key, "").startswith("input_") else "parameter"


def _owner(sequence: int, spans: list[tuple[int, int, str]]) -> str:
    """Path of the innermost module whose call made the operation."""
    around = [(end - start, path) for start, end, path in spans if start < sequence < end]
    return min(around)[1] if around else ""
