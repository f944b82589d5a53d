"""Sums and extrema along short axes, where NumPy goes over an array number by number.

Along a few numbers that lie side by side its loops begin anew for each result. Here they run over
all results, once for each of those numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MANY = 1 << 11  # elements from which it pays to look whether an axis is a short one
_MOST_TERMS = 15  # of a sum; NumPy adds more of them in several rounds
_MOST_COMPARED = 16
_LEAST_RESULTS = 1024
_NARROW, _WIDE = 128, 1024  # lines that are too short for loops; what several of them are read as
_MOST_LINES, _LEAST_LINE = 32, 256  # between which places of extrema are looked for line by line

_UFUNCS = {"max": np.maximum, "min": np.minimum, "argmax": np.maximum, "argmin": np.minimum}


def _has_many(a: Any) -> bool:
    """Whether an array on the host has many numbers that NumPy compares as they are."""
    return type(a) is np.ndarray and a.size >= MANY and a.dtype.char in "fdilq"


def _kept(out: Any, a: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """A result with, or without, an axis of length 1 for each axis of `a` that was reduced."""
    sizes = [1 if i in axes else n for i, n in enumerate(a.shape) if keepdim or i not in axes]
    return out.reshape(sizes)


def _rows(a: Any, axes: tuple[int, ...], most: int) -> Any:
    """`a` as short rows of which each is reduced to one number, or None if it is not like that."""
    first = a.ndim - len(axes)
    if not first or min(axes) != first or not a.flags.c_contiguous:
        return None
    length = math.prod(a.shape[first:])
    if not 2 <= length <= most or a.size < _LEAST_RESULTS * length:
        return None
    return a.reshape(-1, length)


def sums(a: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """The sums of an array with the bits of NumPy's.

    None where it is not of float32 or float64, or the axes are others than short last ones.
    """
    rows = _rows(a, axes, _MOST_TERMS) if a.dtype.char in "fd" else None
    if rows is None:
        return None
    c = [rows[:, j] for j in range(rows.shape[1])]
    total = c[0] + c[1]
    if len(c) < 8:
        rest = c[2:]
    else:  # NumPy adds eight numbers in pairs
        total += c[2] + c[3]
        half = c[4] + c[5]
        half += c[6] + c[7]
        total += half
        rest = c[8:]
    for column in rest:
        total += column
    total += 0.0  # as NumPy's sum of negative zeros is positive
    return _kept(total, a, axes, keepdim)


def extrema(a: Any, axes: tuple[int, ...], keepdim: bool, *, name: str) -> Any:
    """The largest or smallest numbers of an array along short last axes or to a narrow line.

    Args:
        a: An array.
        axes: Along which.
        keepdim: Whether they are kept with length 1.
        name: max or min.

    Returns:
        The array, or None where NumPy is as quick.
    """
    function = _UFUNCS[name]
    if not _has_many(a) or not axes:
        return None
    rows = _rows(a, axes, _MOST_COMPARED)
    if rows is not None:
        out = function(rows[:, 0], rows[:, 1])
        for j in range(2, rows.shape[1]):
            function(out, rows[:, j], out=out)
        return _kept(out, a, axes, keepdim)
    width = math.prod(a.shape[len(axes) :])
    if max(axes) != len(axes) - 1 or not a.flags.c_contiguous or not 1 < width <= _NARROW:
        return None
    lines = a.size // width
    several = math.gcd(lines, 1 << (_WIDE // width).bit_length() - 1)
    if several < 8 or lines < several * 8:
        return None
    out = function.reduce(a.reshape(lines // several, several * width), axis=0)
    return _kept(function.reduce(out.reshape(several, width), axis=0), a, axes, keepdim)


def places(a: Any, axis: int, keepdim: bool, *, name: str) -> Any:
    """The first places of the largest or smallest numbers along an axis of few long lines.

    Args:
        a: An array.
        axis: Along which.
        keepdim: Whether it is kept with length 1.
        name: argmax or argmin.

    Returns:
        int64, or None where NumPy is as quick, or the places are those of NaN.
    """
    if not _has_many(a):
        return None
    length, function = a.shape[axis], _UFUNCS[name]
    if not 2 <= length <= _MOST_LINES or not a.flags.c_contiguous:
        return None
    if math.prod(a.shape[axis + 1 :]) < _LEAST_LINE:
        return None
    extreme = function.reduce(a, axis=axis)
    if np.isnan(extreme).any():
        return None
    found = np.zeros(extreme.shape, np.int64)
    before = (slice(None),) * axis
    for j in reversed(range(length)):  # so that the first one stays
        np.putmask(found, a[(*before, j)] == extreme, j)
    return _kept(found, a, (axis,), keepdim)
