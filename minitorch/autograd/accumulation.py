"""Where gradients end: summed to the shape of their tensor, and added to its `.grad`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..ops.arithmetic import LARGE, combined
from ..ops.primitive import fitted, wrap
from .grad_hooks import AfterAccumulation


def sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sums a gradient over the axes along which its input was broadcast to it."""
    extra = g.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        [i + extra for i, n in enumerate(shape) if n == 1 and g.shape[i + extra] != 1]
    )
    if axes and not hasattr(g, "_array") and g.dtype.itemsize == 2 and g.dtype.kind in "fV":
        g = g.astype(np.float32).sum(axes).astype(g.dtype)  # a half sum would stop growing
    elif axes:
        g = np.add.reduce(g, axes) if type(g) is np.ndarray else g.sum(axes)
    g = g if getattr(g, "shape", None) == shape else g.reshape(shape)
    return g if hasattr(g, "_array") or backend.is_array(g) else np.asarray(g)


def added(a: Any, b: Any, fresh: bool = False) -> Any:
    """The sum of two gradients; it may take the memory of `b` if that is `fresh`."""
    if type(a) is np.ndarray and type(b) is np.ndarray and a.dtype is b.dtype:
        takes = fresh and b.base is None and b.shape == a.shape and b.dtype.kind == "f"
        out = b if takes else None
        total = combined("add", a, b, out) if a.size >= LARGE else None
        return np.add(a, b, out=out) if total is None else total
    return a + b


def grow(total: Any, g: Any) -> Any:
    """`total` with `g` added to it in place; a NumPy scalar does not grow in place."""
    large = type(total) is np.ndarray and total.size >= LARGE and g.shape == total.shape
    if not large or combined("add", total, g, total) is None:
        total += g
    return total


def accumulate(leaf: Any, g: Any, fresh: bool, create_graph: bool = False) -> None:
    """Adds `g` to `leaf.grad`; copies where the memory of `g` is not ours alone."""
    array, slot = leaf._array, leaf._grad_slot
    if (
        leaf._grad is None
        and leaf._hooks is None
        and type(g) is np.ndarray
        and g.dtype is array.dtype
        and g.shape == array.shape
        and array.dtype.kind == "f"
        and not create_graph
    ):  # the usual case first: for small models this is a good part of backward
        if slot is not None and slot.array is array:
            g = slot.store(g, fresh)
        elif not fresh or g.base is not None or not g.flags.c_contiguous:
            g = g.copy()
        leaf._grad = wrap(g)
        return
    if create_graph:
        g = fitted(g, array.dtype)
        leaf._grad = g if leaf._grad is None else leaf._grad + g
    else:
        if not backend.is_array(g):
            g = np.asarray(g)
        if g.dtype != array.dtype:
            g, fresh = fitted(g, array.dtype), True
        elif array.dtype.kind == "c":
            g, fresh = g.conj(), True
        if g.shape != array.shape:
            g = sum_to(g, array.shape)
        present = leaf._grad
        if present is None:
            if slot is not None and slot.array is array:
                g = slot.store(g, fresh)
            elif not fresh or g.base is not None or not g.flags.c_contiguous:
                g = g.copy()
            leaf._grad = wrap(g)
        elif present._rg or present._node is not None:
            leaf._grad = wrap(present._array + g)
        else:
            present._array = grow(present._array, g)
            present._bump("backward")
    if leaf._hooks is not None:
        for hook in list(leaf._hooks.values()):
            if type(hook) is AfterAccumulation:
                hook.call(leaf)
