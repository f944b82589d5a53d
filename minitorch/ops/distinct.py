"""Inputs whose rows repeat, since a table was looked up: what a layer does once for each of them.

A batch of texts has more places than the alphabet has letters, so that a product with the rows of
an embedding computes the same rows again and again. A layer that is told which rows are the same
multiplies each once. In backward it sums the gradients of equal rows before it multiplies them,
and gives the result to the table itself, past the lookup.

The lookup sees no gradient then, which nobody notices: if a hook or `grad` asks for it, or the
numbers were changed in place, the layer works on all rows. Between lookup and layer whole rows may
be moved, as packing sequences does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..autograd.mode import state
from ..autograd.node import Node
from .embedding import lookup
from .indexing import _INDEX, SLICE
from .shape import _PERMUTE, _RESHAPE

# A row saves products of its width with all gates, three times, and costs one sum of their width.
_LEAST_WIDTH = 32  # times the share of rows that repeat others, from which it pays
_LEAST = 1 << 22  # multiplications of all rows
_SPARSE = 8  # a table with so many times as many rows as are looked up is not gone through
_COMPARED = 256  # rows at a time
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
        `index`, `rows` and `padding` as `lookup` has them, and `moves`, which calls of its methods
        turn an array like `index` into one of the rows' numbers; or nothing.
    """
    version = x._version
    if x._node is None or (version is not None and version[0]):
        return {}
    path = _path(x._node)
    if not path or path[-1].params["scale"] is not None:
        return {}
    options = {name: path[-1].params[name] for name in ("index", "rows", "padding")}
    return options | {"moves": tuple([_move(node) for node in path[-2::-1]])}


def distinct_rows(x: Any, width: int, index: Any, rows: int, moves: Any) -> Distinct | None:
    """The distinct rows of an array, if a product with `width` columns is cheaper with them.

    Args:
        x: f[N, K], rows of a table.
        width: Columns of the product.
        index: int[…], their numbers before the `moves` of `options_of`.
        rows: Of the table.
    """
    n, k = x.shape
    if x.size * width < _LEAST or (n - 1) * k < _LEAST_WIDTH * n:
        return None
    flat = numbers_of(index, moves)
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
    found = x.take(first, 0)
    if any(method != "reshape" for method, _ in moves) and not _same(x, found, place):
        return None
    return Distinct(numbers, place, found)


def numbers_of(index: Any, moves: Any) -> Any:
    """Which rows of the table the rows of the input are, as `distinct_rows` has the arguments."""
    for method, how in moves:
        index = getattr(index, method)(how)
    return index.reshape(-1)


def _same(x: Any, rows: Any, place: Any) -> bool:
    """Whether x has these rows; before a copy was made, somebody may have changed some."""
    parts = [slice(i, i + _COMPARED) for i in range(0, len(x), _COMPARED)]
    return all(np.array_equal(x[part], rows.take(place[part], 0)) for part in parts)


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
        if _move(edge) is None:
            break
        edge = edge.edges and edge.edges[0]
    return []


def _move(node: Node) -> tuple[str, Any] | None:
    """How the operation of `node` moves whole rows, as a method of arrays and its argument."""
    op, params = node.op, node.params
    if op is _RESHAPE and params["shape"][-1:] == params["source"][-1:]:
        return "reshape", params["shape"][:-1]
    if op is _PERMUTE and params["dims"][-1] == len(params["dims"]) - 1:
        return "transpose", params["dims"][:-1]
    if op is _INDEX or op is SLICE:
        index = params["index"] if type(params["index"]) is tuple else (params["index"],)
        index = index[:-1] if index and index[-1] is Ellipsis else index
        if len(index) < len(params["source"]) and all(
            type(part) in (int, slice, np.ndarray) for part in index
        ):
            return "__getitem__", index
    return None


__all__ = ["Distinct", "distinct_rows", "numbers_of", "options_of", "past_lookup", "table_of"]
