"""Nested tuples, lists and dicts of values, taken apart and put together again."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

_DICTS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque)


class Structure(NamedTuple):
    """The shape of a tree: the container and its children, or a leaf where `kind` is None."""

    kind: type | None
    keys: tuple[Any, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum(child.leaves for child in self.children)


LEAF = Structure(None)


def _is_container(value: Any) -> bool:
    cls = type(value)
    return (
        cls in _DICTS or cls in _SEQUENCES or (isinstance(value, tuple) and hasattr(cls, "_make"))
    )


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves of a tree in order, and its structure; None is a container of nothing."""
    leaves: list[Any] = []

    def visit(value: Any) -> Structure:
        if value is None:
            return Structure(type(None))
        if not _is_container(value):
            leaves.append(value)
            return LEAF
        if isinstance(value, dict):
            return Structure(type(value), tuple(value), tuple(map(visit, value.values())))
        return Structure(type(value), (), tuple(map(visit, value)))

    structure = visit(tree)
    return leaves, structure


def unflatten(leaves: list[Any], structure: Structure) -> Any:
    """The tree of that structure with these leaves."""
    rest = iter(leaves)

    def build(node: Structure) -> Any:
        kind: Any = node.kind
        if kind is None:
            return next(rest)
        children = [build(child) for child in node.children]
        if kind is type(None):
            return None
        if issubclass(kind, dict):
            pairs = zip(node.keys, children, strict=True)
            return OrderedDict(pairs) if kind is OrderedDict else dict(pairs)
        return kind._make(children) if hasattr(kind, "_make") else kind(children)

    return build(structure)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with `function` of every leaf."""
    leaves, structure = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], structure)


def spread(prefix: Any, structure: Structure) -> list[Any] | None:
    """One value for each leaf of `structure`, from a tree that may stop above the leaves.

    Returns:
        The values, or None if `prefix` does not fit.
    """
    if not _is_container(prefix):
        return [prefix] * structure.leaves
    if structure.kind is None or len(prefix) != len(structure.children):
        return None
    if isinstance(prefix, dict):
        if set(prefix) != set(structure.keys):
            return None
        parts = [prefix[key] for key in structure.keys]
    else:
        parts = list(prefix)
    out: list[Any] = []
    for part, child in zip(parts, structure.children, strict=True):
        values = spread(part, child)
        if values is None:
            return None
        out += values
    return out
