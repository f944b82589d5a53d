"""What chooses a recording: the arguments' structure, and the modes of this thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..autograd.mode import state
from ..device import get_default_device
from ..ops.primitive import Tensor

_PLAIN = (bool, int, float, str, bytes, type(None))


class Unsupported(Exception):
    """An argument that no recording can be chosen by."""


def signature(args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Any]) -> Any:
    """A key for the arguments; their tensors are appended to `tensors`, in order.

    Objects that are no plain values come into the key as `Same`.

    Raises:
        Unsupported: An array is among them.
    """
    parts = tuple([_part(x, tensors) for x in args])
    if kwargs:
        parts += tuple((name, _part(x, tensors)) for name, x in kwargs.items())
    n = len(tensors)
    if n > 1 and len({id(t._array) for t in tensors}) < n:
        first = {id(t._array): i for i, t in reversed(list(enumerate(tensors)))}
        parts += (tuple(first[id(t._array)] for t in tensors),)
    return parts


def _part(x: Any, tensors: list[Any]) -> Any:
    kind = type(x)
    if kind is Tensor or isinstance(x, Tensor):
        if x._view is not None:
            x._sync_view()
        tensors.append(x)
        a = x._array
        leaf = x._node is None if x._rg else None
        return a.shape, a.dtype, leaf, a.flags.c_contiguous if type(a) is np.ndarray else None
    if kind is tuple or kind is list:
        return kind, *[_part(part, tensors) for part in x]
    if kind is dict:
        return kind, *[(key, _part(part, tensors)) for key, part in x.items()]
    if isinstance(x, _PLAIN):
        return kind, (x if x else str(x)) if x == x else "nan"  # -0.0 is not 0.0
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind, *[_part(part, tensors) for part in x]
    if isinstance(x, np.ndarray | np.generic):
        raise Unsupported("an argument is a NumPy array")
    return kind, Same(x)


class Same:
    """A key that equals another one of the same object, and keeps it alive."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.held is self.held

    def __hash__(self) -> int:
        return id(self.held)

    def __repr__(self) -> str:
        return type(self.held).__name__


def modes() -> Any:
    """What else decides how operations compute."""
    return (
        state.recording > 0,
        state.autocast,
        state.autocast_device,
        dtypes.get_default_dtype(),
        get_default_device(),
    )


def objects_in(key: Any) -> list[Any]:
    """The objects of a key that it holds as they are."""
    if isinstance(key, Same):
        return [key.held]
    return [found for part in key for found in objects_in(part)] if type(key) is tuple else []


def watched() -> bool:
    """Whether somebody looks at the nodes that operations make, so that they have to be made."""
    return bool(state.recording > 1 or state.saved_hooks or state.anomaly)


def difference(new: Any, old: Any) -> str:
    """What of a key came differently, in words."""
    shapes = _shapes(new), _shapes(old)
    for a, b in zip(*shapes, strict=False):
        if a != b:
            return f"an argument of shape {a[0]} and {a[1]} after {b[0]} and {b[1]}"
    return f"the arguments {_shown(new)} after {_shown(old)}"


def _shapes(key: Any) -> list[Any]:
    if not isinstance(key, tuple):
        return []
    if len(key) == 4 and isinstance(key[0], tuple) and isinstance(key[1], np.dtype):
        return [(list(key[0]), str(key[1]))]
    return [found for part in key for found in _shapes(part)]


def _shown(key: Any) -> str:
    text = repr(key)
    return text if len(text) < 80 else text[:77] + "..."
