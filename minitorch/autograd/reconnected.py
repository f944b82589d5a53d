"""Arrays as Tensors that hang in the graph where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import backend
from ..ops import primitive
from ..ops.primitive import OUT, Op, wrap
from .node import Node


def as_tensors(node: Node, saved: tuple[Any, ...]) -> Sequence[Any]:
    """The saved values as Tensors that hang in the graph where they came from."""
    out = []
    edges = node.edges or ()
    for position, array in zip(node.op.saves, saved, strict=False):
        edge: Any = node if position == OUT else edges[position]
        if array is None or not backend.is_array(array):
            out.append(array)  # a missing input, or a Python number
            continue
        if edge is not None and type(edge) is not Node:
            out.append(edge if edge._array is array else connected(array, edge))
            continue
        t = wrap(array)
        if edge is not None:
            t._node, t._rg = edge, True
        out.append(t)
    out += saved[len(out) :]
    return out


def connected(array: Any, leaf: Any) -> Any:
    """A Tensor with `array` whose gradient goes to `leaf` (which shows other memory now)."""
    t = wrap(array)
    node = primitive.new_node(ALIAS, (leaf,), primitive.NO_PARAMS)
    t._node, t._rg = node, True
    return t


class _Alias(Op):
    """The identity."""

    name = "alias"
    vjps = (lambda g: g,)


ALIAS = _Alias()
