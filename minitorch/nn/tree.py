"""The attributes of a module are its tree: this file walks them.

Nothing is registered. Each call reads `vars(module)` in the order of assignment and looks into
plain lists, tuples and dicts, so a layer appended later is seen as well. Own parameters come before
those of children, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from ..errors import ArgumentError
from ..tensor import Parameter, Tensor

Item = TypeVar("Item")
Named = Iterator[tuple[str, Any]]

INTERNAL = frozenset({"training", "_hooks", "_declared"})
"""Attributes that hold a module's own state and are no part of the tree."""


class TreeNode:
    """Base of Module: what the walk descends into."""

    training: bool
    _declared: dict[str, bool]


_ENTRIES = (TreeNode, Tensor)
_CONTAINERS = (list, tuple, dict)


class View(Generic[Item]):
    """An iterable that starts afresh for every loop, and also answers `next()` like a generator."""

    __slots__ = ("_iterator", "_walk")

    def __init__(self, walk: Callable[[], Iterator[Item]]) -> None:
        self._walk = walk
        self._iterator: Iterator[Item] | None = None

    def __iter__(self) -> Iterator[Item]:
        return self._walk()

    def __next__(self) -> Item:
        if self._iterator is None:
            self._iterator = self._walk()
        return next(self._iterator)


def _inside(prefix: str, container: Any, open_ids: tuple[int, ...]) -> Named:
    """Modules and parameters in a plain container; data (tensors, numbers) is not looked at."""
    kinds = set(map(type, container.values() if isinstance(container, dict) else container))
    if not any(issubclass(kind, (TreeNode, Parameter, *_CONTAINERS)) for kind in kinds):
        return
    if id(container) in open_ids:
        return
    pairs = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in list(pairs):
        if isinstance(value, TreeNode | Parameter):
            yield f"{prefix}.{key}", value
        elif isinstance(value, _CONTAINERS) and value:
            yield from _inside(f"{prefix}.{key}", value, (*open_ids, id(container)))


def entries(module: TreeNode) -> Named:
    """Yields (name, value) of the modules and tensors that `module` itself holds."""
    for name, value in list(vars(module).items()):
        if isinstance(value, _ENTRIES):
            yield name, value
        elif isinstance(value, _CONTAINERS) and value and name not in INTERNAL:
            yield from _inside(name, value, ())


def own_modules(module: TreeNode) -> Named:
    """Yields (name, module) of the direct children."""
    return ((name, value) for name, value in entries(module) if isinstance(value, TreeNode))


def own_parameters(module: TreeNode) -> Named:
    """Yields (name, parameter) of the parameters that `module` itself holds."""
    return ((name, value) for name, value in entries(module) if isinstance(value, Parameter))


def own_buffers(module: TreeNode) -> Named:
    """Yields (name, tensor) of declared buffers and of plain tensors that need no gradient."""
    declared = module._declared
    for name, value in vars(module).items():
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            if name in declared or not value.requires_grad:
                yield name, value


def join(prefix: str, name: str) -> str:
    """`"prefix.name"`, or `name` where there is no prefix."""
    return f"{prefix}.{name}" if prefix else name


def walk_modules(module: TreeNode, prefix: str, remove_duplicate: bool, seen: set[int]) -> Named:
    """Yields (path, module) from `module` downwards, parents first.

    Args:
        module: Where to start; reported as `prefix`.
        prefix: Path of `module`.
        remove_duplicate: Report a module that is reachable twice only at its first path.
        seen: Ids of the modules that are not reported again.
    """
    if id(module) in seen:
        return
    _check_initialised(module)
    seen.add(id(module))
    yield prefix, module
    for name, child in own_modules(module):
        yield from walk_modules(child, join(prefix, name), remove_duplicate, seen)
    if not remove_duplicate:
        seen.discard(id(module))


def walk_leaves(
    module: TreeNode,
    own: Callable[[TreeNode], Named],
    prefix: str,
    recurse: bool,
    remove_duplicate: bool,
) -> Named:
    """Yields (path, tensor) for what `own` finds in each module below `module`."""
    seen: set[int] = set()
    owners = (
        walk_modules(module, prefix, remove_duplicate, set()) if recurse else [(prefix, module)]
    )
    for path, owner in owners:
        for name, leaf in own(owner):
            if remove_duplicate:
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
            yield join(path, name), leaf


def _check_initialised(module: TreeNode) -> None:
    if "training" not in vars(module):
        name = type(module).__name__
        raise AttributeError(
            f"{name}: a module must be initialised before it is used. {name}.__init__ did not call "
            "super().__init__(). Make it the first line of __init__."
        )


def check_name(owner: str, kind: str, name: str) -> None:
    """Raises ArgumentError unless `name` can be the name of a parameter, buffer or module."""
    if not isinstance(name, str) or not name or "." in name:
        raise ArgumentError(
            f"{owner}: the name of a {kind} must be a non-empty string without '.'. Got {name!r}. "
            "Dots separate the levels of the tree."
        )
