"""Inputs whose rows repeat, since a table was looked up: what a layer does once for each of them.

A batch of texts has more places than the alphabet has letters, so that a product with the rows of
an embedding computes the same rows again and again. A layer that is told which rows are the same
multiplies each once. In backward it sums the gradients of equal rows before it multiplies them,
and gives the result to the table itself, past the lookup.

The lookup sees no gradient then, which nobody notices: if a hook or `grad` asks for it, or the
numbers were changed in place, the layer works on all rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..autograd.mode import state
from ..autograd.node import Node
from .embedding import lookup
from .shape import _RESHAPE

# A row saves products of its width with all gates, three times, and costs one sum of their width.
_LEAST_WIDTH = 32  # of rows, all but one of which are equal, so that it pays
_LEAST = 1 << 22  # multiplications of all rows
_SPARSE = 8  # a table with so many times as many rows as are looked up is not gone through
_NOTES = frozenset(("line", "meant", "notes"))  # in the meta of a node that nobody watches


class Distinct(NamedTuple):
    """The distinct rows of an input.

    Attributes:
        numbers: int[U], their numbers in the table, in order.
        place: int64[N], for each row of the input which of them it is.
        rows: f[U, K], themselves.
    """

    numbers: Any
    place: Any
    rows: Any


def options_of(x: Any) -> dict[str, Any]:
    """Which rows of a table the rows of the Tensor x_NK are, if that is known.

    Returns:
        `index`, the numbers, and `rows` and `padding` as `lookup` has them; or nothing.
    """
    version = x._version
    if x._node is None or (version is not None and version[0]):
        return {}
    path = _path(x._node)
    if not path or path[-1].params["scale"] is not None:
        return {}
    return {name: path[-1].params[name] for name in ("index", "rows", "padding")}


def distinct_rows(x: Any, width: int, index: Any, rows: int) -> Distinct | None:
    """The distinct rows of an array, if a product with `width` columns is cheaper with them.

    Args:
        x: f[N, K], the rows of a table with the numbers `index`.
        width: Columns of the product.
        index: int[…], N numbers.
        rows: Of the table.
    """
    n, k = x.shape
    if x.size * width < _LEAST or (n - 1) * k < _LEAST_WIDTH * n:
        return None
    flat = index.reshape(-1)
    if rows > _SPARSE * n:
        numbers, first, place = np.unique(flat, return_index=True, return_inverse=True)
    else:
        seen = np.zeros(rows, np.bool_)
        seen[flat] = True
        numbers = np.flatnonzero(seen)
        order = np.empty(rows, np.int64)
        order[numbers] = np.arange(len(numbers))
        place, first = order[flat], np.empty(len(numbers), np.int64)
        first[place] = np.arange(n)
    if (n - len(numbers)) * k < _LEAST_WIDTH * n:
        return None
    return Distinct(numbers, place, x.take(first, 0))


def past_lookup(node: Node) -> bool:
    """Whether the gradient of the first input of `node` may go to the table of its lookup."""
    running, path = state.running, _path(node.edges and node.edges[0])
    if running is None or not path or not path[-1].edges or state.anomaly:
        return False
    if node.meta is not None and "after" in node.meta:
        return False
    if any(n.meta is not None and not n.meta.keys() <= _NOTES for n in path):
        return False
    if running.wanted is None:
        return True
    return path[-1].edges[0] in running.needed and running.wanted.isdisjoint(path)


def table_of(node: Node) -> Any:
    """The edge of the table whose rows the first input of `node` has."""
    path: Any = _path(node.edges and node.edges[0])
    return path[-1].edges[0]


def _path(edge: Any) -> list[Node]:
    """The nodes from that which gives rows of a table back to the lookup; else none."""
    path: list[Node] = []
    while type(edge) is Node:
        path.append(edge)
        if edge.op is lookup:
            return path
        if edge.op is not _RESHAPE or edge.params["shape"][-1:] != edge.params["source"][-1:]:
            break
        edge = edge.edges and edge.edges[0]
    return []


__all__ = ["Distinct", "distinct_rows", "options_of", "past_lookup", "table_of"]
