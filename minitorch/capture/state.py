"""The Python state that a step may read: attributes, globals, closures, and containers in them.

A recording holds only while all of it is as it was. What is compared is the identity of objects,
and the value of numbers and strings; tensors are compared by identity, since replays read their
values anew.
"""

from __future__ import annotations

import functools
import gc
import math
import random
import sys
import threading
import weakref
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import (
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from ..nn.containers import ModuleDict, Sequential
from ..nn.module import Module
from ..tensor import Tensor
from .audit import origin
from .identity import Identity, question_of

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MISSING = object()
_LARGEST = 50_000
_SMALL = 4096  # elements of a NumPy array up to which its values are compared
# Modules whose objects are looked at by identity only.
_OPAQUE = frozenset(sys.stdlib_module_names) | {"minitorch", "numpy", "builtins"}
# Modules of the standard library whose objects hold what others put into them.
_HOLDERS = frozenset("argparse collections configparser optparse types".split())
_HASHED = 1 << 26  # bytes of a NumPy array up to which a change in the recorded run is noticed
_DEEPEST = 12
# What a Module notes of its attributes when they are set; it changes with them alone.
_NOTES = ("_declared", "_constants")


class TooLarge(Exception):
    """There is more state than can be compared in every step."""


class State:
    """A snapshot of what `roots` and the globals of `codes` lead to.

    Args:
        roots: Pairs of a name and the function, module or object that runs.
        codes: The user's code that runs, with its globals.

    Attributes:
        tensors: For the id of each array that was found, its tensor.
        iterator: The first iterator that was found; nobody can tell whether it was advanced.
    """

    def __init__(
        self, roots: Iterable[tuple[str, Any]], codes: Mapping[CodeType, dict[str, Any]]
    ) -> None:
        self.tensors: dict[int, Any] = {}
        self.iterator = ""
        self._codes = codes
        self._seen: dict[int, Any] = {}
        self._classes: dict[int, type] = {}
        self._read: set[tuple[int, int]] = set()
        self._maps: list[tuple[Any, Any, Any, str]] = []
        self._lists: list[tuple[Any, Any, Any, str]] = []
        self._cells: list[tuple[CellType, Any, str]] = []
        self._slots: list[tuple[Any, str, Any, str]] = []
        self._sizes: list[tuple[Any, int, str]] = []
        self._orders: list[tuple[Any, list[Any], str]] = []
        self._large: list[tuple[Any, int, str]] = []
        self._asked: list[tuple[Callable[[], Any], Any, str]] = []
        for name, root in roots:
            self._visit(name, root, 0)
        self._take_codes()
        del self._codes
        self._identity = Identity(
            maps=self._maps,
            slots=self._slots,
            lists=self._lists,
            cells=self._cells,
            orders=self._orders,
            sizes=self._sizes,
        )

    # ---- taking ----------------------------------------------------------------------------------

    def _take_codes(self) -> None:
        closed = [code for code in self._codes if code.co_freevars]
        for function in gc.get_referrers(*closed) if closed else ():
            if isinstance(function, FunctionType) and function.__code__ in self._codes:
                self._function(function.__qualname__, function, 0)
        for code, names in self._codes.items():
            where = origin(code.co_filename)
            if where == "standard library":
                continue
            for name in code.co_names:
                value = names.get(name, _MISSING)
                if value is _MISSING and where == "user":
                    self._imported(name, code, names)
                if value is _MISSING or (where == "library" and not isinstance(value, _PLAIN)):
                    continue
                self._entry(self._maps, names, name, value, f"the global {name}", 0)
                if isinstance(value, ModuleType):
                    self._module_attributes(value, code)

    def _imported(self, name: str, code: CodeType, names: dict[str, Any]) -> None:
        """A module that the code may import itself."""
        for path in (name, f"{names.get('__package__') or ''}.{name}"):
            module = sys.modules.get(path)
            if module is not None and origin(getattr(module, "__file__", None) or "") == "user":
                self._module_attributes(module, code)

    def _module_attributes(self, module: ModuleType, code: CodeType) -> None:
        key = id(module), id(code)
        if module.__name__.partition(".")[0] in _OPAQUE or key in self._read:
            return
        self._read.add(key)
        for name in code.co_names:
            value = vars(module).get(name, _MISSING)
            if value is not _MISSING:
                path = f"{module.__name__}.{name}"
                self._entry(self._maps, vars(module), name, value, path, 0)
                if isinstance(value, ModuleType):
                    self._module_attributes(value, code)

    def _entry(
        self, entries: list[Any], holder: Any, key: Any, value: Any, path: str, depth: int
    ) -> None:
        if len(self._maps) + len(self._lists) > _LARGEST:
            raise TooLarge
        entries.append((holder, key, value, path))
        self._visit(path, value, depth)

    def _visit(self, path: str, value: Any, depth: int) -> None:
        if isinstance(value, _PLAIN) or id(value) in self._seen or depth > _DEEPEST:
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors.setdefault(id(value._array), value)
            self._held(path, getattr(value, "__dict__", None) or None, depth)
        elif isinstance(value, Module):
            self._attributes(path, value, depth)
        elif isinstance(value, dict | MappingProxyType | list | deque | tuple):
            self._container(path, value, depth)
            if not _is_opaque(type(value)):
                self._attributes(path, value, depth)
        elif isinstance(value, MethodType):
            self._visit(path, value.__self__, depth)
            self._visit(path, value.__func__, depth)
        elif isinstance(value, FunctionType):
            if value.__code__ in self._codes or not depth:
                self._function(path, value, depth)
        else:
            self._object(path, value, depth)

    def _container(self, path: str, value: Any, depth: int) -> None:
        if isinstance(value, dict | MappingProxyType):
            self._orders.append((value, list(value), path))
            for key, held in list(value.items()):
                self._entry(self._maps, value, key, held, f"{path}[{key!r}]", depth + 1)
        elif isinstance(value, tuple):
            for i, held in enumerate(value):
                self._visit(f"{path}[{i}]", held, depth + 1)
        else:
            self._sizes.append((value, len(value), path))
            for i, held in enumerate(value):
                self._entry(self._lists, value, i, held, f"{path}[{i}]", depth + 1)

    def _function(self, path: str, function: FunctionType, depth: int) -> None:
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self._cells.append((cell, value, f"the variable {name}"))
            self._visit(f"the variable {name}", value, depth + 1)
        self._held(path, vars(function), depth)
        for value in function.__defaults__ or ():
            self._visit(f"a default of {path}", value, depth + 1)
        for name, value in (function.__kwdefaults__ or {}).items():
            self._visit(f"the default of {name}", value, depth + 1)

    def _held(self, path: str, held: Any, depth: int) -> None:
        """The attributes in a `__dict__`; None has none."""
        if held is None:
            return
        self._sizes.append((held, len(held), path))
        for name, value in list(held.items()):
            if name == "_task":  # a TaskModule's link to its Trainer, and its hyper-parameters
                values = getattr(getattr(value, "hparams", None), "_values", None)
                self._visit(f"{path}.hparams", values, depth + 1)
            elif name in _NOTES:
                self._maps.append((held, name, value, f"{path}.{name}"))
            else:
                self._entry(self._maps, held, name, value, f"{path}.{name}", depth + 1)

    def _attributes(self, path: str, holder: Any, depth: int) -> None:
        held = getattr(holder, "__dict__", None)
        self._held(path, held, depth)
        if isinstance(holder, ModuleDict | Sequential):
            self._orders.append((held, list(held or ()), path))
        if type(holder) is holder.__class__:  # no proxy
            self._slots.append((holder, "__class__", holder.__class__, f"{path}.__class__"))
        self._class(holder.__class__, depth)
        for kind in type(holder).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if _is_opaque(kind) or name in ("__dict__", "__weakref__"):
                    continue
                private = name[:2] == "__" and name[-2:] != "__"
                name = f"_{kind.__name__.lstrip('_')}{name}" if private else name
                held = getattr(holder, name, _MISSING)
                self._entry(self._slots, holder, name, held, f"{path}.{name}", depth + 1)

    def _class(self, kind: type, depth: int) -> None:
        """What a class and those that it comes from hold."""
        for part in kind.__mro__:
            if _is_opaque(part) or id(part) in self._classes:
                continue
            self._classes[id(part)] = part
            held = vars(part)
            for name, value in list(held.items()):
                if name[:2] != "__":
                    path = f"{part.__name__}.{name}"
                    self._entry(self._maps, held, name, value, path, depth + 1)

    def _object(self, path: str, value: Any, depth: int) -> None:
        kind = type(value)
        if isinstance(value, set | frozenset):
            self._ask(question_of(value), path)
        elif isinstance(value, np.ndarray):
            if value.size <= _SMALL:
                self._ask(value.tobytes, path)
            elif value.nbytes <= _HASHED:
                self._large.append((value, zlib.crc32(value.tobytes()), path))
        elif isinstance(value, bytearray | array):
            if len(value) <= _SMALL:
                self._ask(lambda: bytes(value), path)
        elif isinstance(value, np.random.Generator):
            self._ask(lambda: str(value.bit_generator.state), path)
        elif isinstance(value, random.Random):
            self._ask(value.getstate, path)
        elif isinstance(value, type):
            self._class(value, depth)
        elif isinstance(value, threading.local):
            self._ask(lambda: _named(vars(value)), path)
        elif isinstance(value, functools.partial):
            self._visit(path, value.func, depth + 1)
            self._visit(path, (value.args, value.keywords), depth + 1)
        elif isinstance(value, weakref.ref):
            self._visit(path, value(), depth + 1)
        elif isinstance(value, weakref.ProxyTypes):
            self._attributes(path, value, depth)
        elif isinstance(value, ModuleType):
            return
        elif _is_opaque(kind):
            self._of_libraries(path, value, depth)
        else:
            self._attributes(path, value, depth)

    def _of_libraries(self, path: str, value: Any, depth: int) -> None:
        """What users put into objects of the standard library and of this package."""
        kind = type(value)
        if kind.__module__.partition(".")[0] in _HOLDERS:
            self._held(path, getattr(value, "__dict__", None), depth)
        elif kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__"):
            self.iterator = self.iterator or path
        elif hasattr(value, "__wrapped__"):
            self._visit(path, value.__wrapped__, depth)
        elif any("param_groups" in code.co_names for code in self._codes):
            self._visit(f"{path}.param_groups", getattr(value, "param_groups", None), depth)

    def _ask(self, question: Callable[[], Any], path: str) -> None:
        self._asked.append((question, question(), path))

    # ---- comparing -------------------------------------------------------------------------------

    def holds(self, value: Any) -> bool:
        """Whether this very object was found."""
        return id(value) in self._seen

    def changed_now(self) -> str:
        """`changed`, for the run after which it was taken; large NumPy arrays are compared too."""
        for held, number, path in self._large:
            if zlib.crc32(held.tobytes()) != number:
                return path
        return self.changed()

    def changed(self) -> str:
        """The first part that is no longer as it was; "" if there is none."""
        path = "" if self._identity.holds() else self._changed()
        if path:
            return path
        for question, answer, path in self._asked:
            if question() != answer:
                return path
        return ""

    def _changed(self) -> str:
        """`changed`, entry by entry: other objects may be equal."""
        for held, key, value, path in self._maps:
            now = held.get(key, _MISSING)
            if now is not value and not _equal(now, value):
                return path
        for held, name, value, path in self._slots:
            now = getattr(held, name, _MISSING)
            if now is not value and not _equal(now, value):
                return path
        for container, keys, path in self._orders:
            if list(container) != keys:
                return path
        for container, count, path in self._sizes:
            if len(container) != count:
                return path
        for held, key, value, path in self._lists:
            now = held[key]
            if now is not value and not _equal(now, value):
                return path
        for cell, value, path in self._cells:
            now = _contents(cell)
            if now is not value and not _equal(now, value):
                return path
        return ""


def _is_opaque(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _OPAQUE


def _named(held: dict[str, Any]) -> list[Any]:
    return [(k, v if isinstance(v, _PLAIN) else id(v)) for k, v in held.items()]


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _equal(a: Any, b: Any) -> bool:
    """Whether two different objects are one plain value, or tuples of such, or one method."""
    if type(a) is not type(b):
        return False
    if isinstance(a, _PLAIN):
        return bool(a == b) and (a != 0 or str(a) == str(b)) or (_is_nan(a) and _is_nan(b))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(x is y or _equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, MethodType):
        return a.__self__ is b.__self__ and a.__func__ is b.__func__
    return False


def _is_nan(x: Any) -> bool:
    return isinstance(x, float) and math.isnan(x)
