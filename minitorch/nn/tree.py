"""The attributes of a module are its tree: this file walks them.

Nothing is registered. Each call reads `vars(module)` in the order of assignment and looks into
plain lists, tuples and dicts, so a layer appended later is seen as well. Own parameters come before
those of children, as in PyTorch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Generic, NamedTuple, TypeVar

from ..errors import ArgumentError
from ..kernels.ahead import made
from ..tensor import Parameter, Tensor

Item = TypeVar("Item")
Named = Iterator[tuple[str, Any]]

INTERNAL = frozenset({"training", "_hooks", "_declared", "_constants", "_ties", "_left"})
"""Attributes that hold a module's own state and are no part of the tree."""


class TreeNode:
    """Base of Module: what the walk descends into."""

    training: bool
    _declared: dict[str, bool]
    _constants: set[str]


class Contents(NamedTuple):
    """What a module itself holds, as (name, value) in the order of assignment."""

    modules: list[tuple[str, Any]]
    parameters: list[tuple[str, Any]]
    buffers: list[tuple[str, Any]]


_MODULE, _PARAMETER, _TENSOR, _CONTAINER, _OTHER = range(5)
_kinds: dict[type, int] = {}


def _kind_of(cls: type) -> int:
    """How values of a class count; remembered, since walks ask for every attribute."""
    bases: tuple[Any, ...] = (TreeNode, Parameter, Tensor, (list, tuple, dict), object)
    kind = next(i for i, base in enumerate(bases) if issubclass(cls, base))
    _kinds[cls] = kind
    return kind


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


def _inside(found: Contents, prefix: str, container: Any, open_ids: tuple[int, ...]) -> None:
    """Adds modules and parameters in a plain container; data in it is not looked at."""
    values = container.values() if isinstance(container, dict) else container
    kinds = {_kinds[c] if c in _kinds else _kind_of(c) for c in set(map(type, values))}
    if kinds <= {_TENSOR, _OTHER} or id(container) in open_ids:
        return
    pairs = container.items() if isinstance(container, dict) else enumerate(container)
    for key, value in list(pairs):
        kind = _kinds[type(value)]
        if kind == _MODULE:
            found.modules.append((f"{prefix}.{key}", value))
        elif kind == _PARAMETER:
            found.parameters.append((f"{prefix}.{key}", value))
        elif kind == _CONTAINER and value:
            _inside(found, f"{prefix}.{key}", value, (*open_ids, id(container)))


def contents(module: TreeNode) -> Contents:
    """The modules, parameters and buffers that `module` itself holds.

    Buffers are declared ones and plain tensors that need no gradient.
    """
    attributes = module.__dict__
    if "training" not in attributes:
        _raise_uninitialised(module)
    found = Contents([], [], [])
    for name, value in list(attributes.items()):
        cls = type(value)
        kind = _kinds[cls] if cls in _kinds else _kind_of(cls)
        if kind == _OTHER:
            continue
        if kind == _PARAMETER:
            found.parameters.append((name, value))
        elif kind == _MODULE:
            found.modules.append((name, value))
        elif kind == _TENSOR:
            if name in attributes["_declared"] or not value.requires_grad:
                found.buffers.append((name, value))
        elif value and name not in INTERNAL:
            _inside(found, name, value, ())
    return found


def is_saved(module: TreeNode, name: str) -> bool:
    """True if state dicts hold the buffer `name`: it was registered so, or is a plain tensor that
    the constructor set; one that came later, such as a kept activation, is moved but not saved.
    """
    return module._declared.get(name, name in module._constants)


def note_made(module: TreeNode) -> None:
    """Notes that there is a module of this kind, whose kernels will be needed."""
    made.add(type(module).__name__)


def note_constant(module: TreeNode, name: str) -> None:
    """Notes whether the plain tensor that becomes attribute `name` is set by the constructor."""
    attributes = module.__dict__
    if "training" not in attributes or name in attributes["_declared"]:
        return
    if _in_constructor_of(module):
        attributes["_constants"].add(name)
    else:
        attributes["_constants"].discard(name)


def _in_constructor_of(module: TreeNode) -> bool:
    """True if an `__init__` of this very object is running, also in a method called from it."""
    frame: FrameType | None = sys._getframe(3)  # whoever sets the attribute
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__init__" and code.co_argcount:
            if frame.f_locals.get(code.co_varnames[0]) is module:
                return True
        frame = frame.f_back
    return False


def join(prefix: str, name: str) -> str:
    """`"prefix.name"`, or `name` where there is no prefix."""
    return f"{prefix}.{name}" if prefix else name


Held = tuple[str, Any, Contents]


def walk(module: TreeNode, prefix: str, remove_duplicate: bool, seen: set[int]) -> list[Held]:
    """(path, module, contents) from `module` downwards, parents first.

    Args:
        module: Where to start; reported as `prefix`.
        prefix: Path of `module`.
        remove_duplicate: Report a module that is reachable twice only at its first path.
        seen: Ids of the modules that are not reported again.
    """
    found: list[Held] = []

    def visit(path: str, node: TreeNode) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        if "_ties" in node.__dict__:
            keep_ties(node)
        held = contents(node)
        found.append((path, node, held))
        for name, child in held.modules:
            visit(f"{path}.{name}" if path else name, child)
        if not remove_duplicate:
            seen.discard(id(node))

    visit(prefix, module)
    return found


def walk_leaves(
    module: TreeNode, which: str, prefix: str, recurse: bool, remove_duplicate: bool
) -> Named:
    """(path, tensor) of everything below `module`.

    Args:
        module: Where to start.
        which: `"parameters"` or `"buffers"`.
        prefix: Put before every path.
        recurse: Look into children as well.
        remove_duplicate: Report a tensor that is reachable twice only at its first path.
    """
    field = Contents._fields.index(which)
    if recurse:
        owners = walk(module, prefix, remove_duplicate, set())
    else:
        owners = [(prefix, module, contents(module))]
    seen: set[int] = set()
    found = []
    for path, _, held in owners:
        for name, leaf in held[field]:
            if remove_duplicate:
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
            found.append((f"{path}.{name}" if path else name, leaf))
    return iter(found)


def _raise_uninitialised(module: TreeNode) -> None:
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


def keep_ties(module: TreeNode) -> None:
    """Puts declared ties back where a copy broke them."""
    from .ties import keep

    keep(module, module.__dict__["_ties"])


def locate(module: TreeNode, path: str) -> tuple[Any, Any]:
    """The module, list or dict that holds what is at `path`, and its name or key there.

    Raises:
        AttributeError: A part of the path but the last does not exist.
    """
    holder: Any = module
    *parents, last = path.split(".")
    for name in parents:
        if isinstance(holder, TreeNode):
            holder = holder.__dict__.get(name)
        elif isinstance(holder, dict | list | tuple):
            key = _key(holder, name)
            holder = holder[key] if key is not None else None
        if not isinstance(holder, TreeNode | dict | list | tuple):
            _raise_no_place(module, path)
    if isinstance(holder, TreeNode):
        return holder, last
    key = _key(holder, last)
    if key is None or isinstance(holder, tuple):
        _raise_no_place(module, path)
    return holder, key


def _key(container: Any, name: str) -> Any:
    """The key or position that the path calls `name`, or None."""
    keys = container if isinstance(container, dict) else range(len(container))
    return next((key for key in keys if str(key) == name), None)


def _raise_no_place(module: TreeNode, path: str) -> None:
    raise AttributeError(
        f"{type(module).__name__}: there is no place '{path}' in this tree. Every part of the path "
        "but the last must exist, and tuples cannot be changed; named_modules() lists the paths."
    )
