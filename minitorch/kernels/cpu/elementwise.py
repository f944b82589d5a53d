"""Elementwise operations, each one pass over memory in blocks of elements.

An operation is a function of numbers (`activation.py`), and this file the loop around it: a body
for each function, compiled on first use.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from . import activation
from .kernel import Kernel, inlined, kernel

_BLOCK = 4096
# Products are not reordered: parts of them would overflow.
_LOOSE = frozenset(("contract", "nsz", "arcp"))
# Gradients that are plain arithmetic have the bits of NumPy's.
_EXACT = frozenset(
    f"{name}_slope"
    for name in "relu leaky_relu hardtanh exp expm1 log log1p sqrt tanh sigmoid".split()
)


def _values(first, last, x, y, p, q):  # type: ignore[no-untyped-def]
    xs, ys = x[first * _BLOCK : last * _BLOCK], y[first * _BLOCK : last * _BLOCK]
    a, b = x.dtype.type(p), x.dtype.type(q)
    for i in range(len(xs)):
        ys[i] = function(xs[i], a, b)  # noqa: F821


def _gradients(first, last, g, saved, dx, p, q):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, last * _BLOCK
    gs, xs, ds = g[start:stop], saved[start:stop], dx[start:stop]
    a, b = g.dtype.type(p), g.dtype.type(q)
    for i in range(len(gs)):
        ds[i] = function(gs[i], xs[i], a, b)  # noqa: F821


@kernel()
def _choose(first, last, a, b, condition, y):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, last * _BLOCK
    xs, zs, cs, ys = a[start:stop], b[start:stop], condition[start:stop], y[start:stop]
    for i in range(len(xs)):
        x, z = xs[i], zs[i]  # both are read: a branch would keep the loop from vector code
        ys[i] = x if cs[i] else z


@kernel()
def _keep(first, last, a, number, condition, wanted, y):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, last * _BLOCK
    xs, cs, ys = a[start:stop], condition[start:stop], y[start:stop]
    for i in range(len(xs)):
        x = xs[i]
        ys[i] = x if cs[i] == wanted else number


@kernel()
def _drop(first, last, x, keep, y, scale):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, last * _BLOCK
    xs, ks, ys, zero = x[start:stop], keep[start:stop], y[start:stop], scale * 0
    for i in range(len(xs)):
        ys[i] = xs[i] * (scale if ks[i] else zero)


@functools.cache
def _compiled(loop: Callable[..., Any], name: str) -> Kernel:
    """The loop around a function of `activation.py`, under a name of its own on disk."""
    function = inlined(getattr(activation, name))
    body = types.FunctionType(loop.__code__, {**globals(), "function": function})
    body.__qualname__ = body.__name__ = f"{loop.__name__}_{name}"
    return Kernel(body, () if name in _EXACT else _LOOSE)


@functools.cache
def _slope(name: str) -> Kernel:
    return _compiled(_gradients, f"{name}_slope")


def value(name: str, x: Any, p: float = 0.0, q: float = 0.0, *, out: Any = None) -> Any:
    """The function `name` of a contiguous array; `out` may be `x` itself."""
    y, blocks = np.empty(x.shape, x.dtype) if out is None else out, -(-x.size // _BLOCK)
    _compiled(_values, name)(blocks, x.reshape(-1), y.reshape(-1), float(p), float(q))
    return y


def gradient(name: str, g: Any, saved: Any, p: float = 0.0, q: float = 0.0) -> Any:
    """The gradient of `name` from that of its result, and what it saves; contiguous arrays."""
    dx, blocks = np.empty(g.shape, g.dtype), -(-g.size // _BLOCK)
    flat = g.reshape(-1), saved.reshape(-1), dx.reshape(-1)
    _slope(name)(blocks, *flat, float(p), float(q))
    return dx


def choose(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; one of them may be a number of the dtype."""
    array = a if isinstance(a, np.ndarray) else b
    y = np.empty(array.shape, array.dtype)
    blocks, cs, out = -(-y.size // _BLOCK), condition.reshape(-1), y.reshape(-1)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        _choose(blocks, a.reshape(-1), b.reshape(-1), cs, out)
    else:
        wanted = array is a
        _keep(blocks, array.reshape(-1), b if wanted else a, cs, wanted, out)
    return y


def drop(x: Any, keep: Any, scale: float) -> Any:
    """`x · scale` where `keep`, else `x · 0`; contiguous arrays of one shape."""
    y = np.empty(x.shape, x.dtype)
    flat = (a.reshape(-1) for a in (x, keep, y))
    _drop(-(-x.size // _BLOCK), *flat, x.dtype.type(scale))
    return y
