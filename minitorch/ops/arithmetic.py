"""Sums, differences, products and quotients of large arrays, shared out to threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..kernels import load, threads

# Elements from which a second thread pays, also on a machine with other work, on which the caller
# waits for pieces that the other thread has begun.
LARGE = 1 << 20
NAMES = frozenset(("add", "sub", "mul", "div"))
_SHORTEST = 64  # of a line that is read again for each row
_MOST = 1e38  # larger numbers are left to NumPy, which warns of those that no float32 can be


def combined(name: str, a: Any, b: Any, out: Any = None) -> Any:
    """The result of an operation with the bits of NumPy's, or None where NumPy is as quick.

    Args:
        name: One of `NAMES`.
        a: An array or a number. One of the operands has the shape of the result; the other may be
            a number or a line that is combined with each row.
        b: Likewise.
        out: An array of the shape and dtype of the result, in which it is put; it may be one of
            the operands.
    """
    first = type(a) is np.ndarray and (type(b) is not np.ndarray or a.size >= b.size)
    whole, other = (a, b) if first else (b, a)
    if not whole.flags.c_contiguous or whole.dtype.char not in "fd" or whole.size < LARGE:
        return None
    if type(other) is np.ndarray:
        if other.dtype != whole.dtype or not other.flags.c_contiguous:
            return None
        if other.shape != whole.shape:
            ends = other.shape == whole.shape[whole.ndim - other.ndim :]
            if not ends or other.size < _SHORTEST:
                return None
    elif type(other) not in (int, float) or not -_MOST < other < _MOST:
        return None
    kernels = load("arithmetic")
    if kernels is None or threads.count() < 2:
        return None
    if out is None:
        out = np.empty(whole.shape, whole.dtype)
    elif not out.flags.c_contiguous:
        return None
    return kernels.pair(name, a, b, out)


def shared_out(name: str, body: Callable[..., Any]) -> Callable[..., Any]:
    """The body of an operation of two arrays; large ones are shared out if it is of `NAMES`."""
    if name not in NAMES:
        return body

    def call(a: Any, b: Any) -> Any:
        if _is_large(a) or _is_large(b):
            y = combined(name, a, b)
            if y is not None:
                return y
        return body(a, b)

    return call


def _is_large(x: Any) -> bool:
    return type(x) is np.ndarray and x.size >= LARGE
