"""Gradients of parts of a tensor, which are put together once all of them are known.

The gradient of a slice is 0 outside of it. Written out for each slice, it would cost as much as the
whole tensor each time; here every part is written into one buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend
from ..backend.memory import address

Index = tuple[Any, ...]
_ALL = slice(None)


class Parts:
    """What has flowed into a tensor so far, some of it into slices.

    Attributes:
        shape: Of the tensor.
        whole: What flowed into all of it before, or None.
        places: The index of each slice.
        values: Their gradients, of one dtype.
        held: How many numbers the gradients hold.
    """

    __slots__ = ("held", "places", "shape", "values", "whole")

    def __init__(self, shape: tuple[int, ...], whole: Any, place: Index, value: Any) -> None:
        self.shape = shape
        self.whole = whole
        self.places = [place]
        self.values = [value]
        self.held = value.size

    @property
    def dtype(self) -> Any:
        """The dtype that all have."""
        return self.values[0].dtype

    def add(self, place: Index, value: Any) -> bool:
        """Takes the gradient of a slice; False once more is held than the tensor itself takes."""
        self.places.append(place)
        self.values.append(value)
        self.held += value.size
        return bool(self.held <= math.prod(self.shape))


def together(parts: Parts) -> Any:
    """The memory that the gradients of slices fill in their order already, or None.

    It is theirs: who gets it may read it only.
    """
    memory = getattr(parts.values[0], "base", None)
    if type(memory) is not np.ndarray or parts.whole is not None or memory.size != parts.held:
        return None
    if memory.dtype != parts.dtype or not memory.flags.c_contiguous:
        return None
    if cut(parts.places, parts.shape) != (True, True):
        return None
    total = memory.reshape(parts.shape)
    for place, value in zip(parts.places, parts.values, strict=True):
        part = total[place]
        if value.base is not memory or part.shape != value.shape or part.strides != value.strides:
            return None
        if address(part) != address(value):
            return None
    return total


def assemble(shape: tuple[int, ...], places: Sequence[Index], whole: Any, *values: Any) -> Any:
    """The gradient of a tensor, in new memory.

    Args:
        shape: Of the tensor.
        places: The index of each slice: integers, slices, None, Ellipsis.
        whole: What flowed into all of the tensor, or None.
        values: The gradients of the slices.
    """
    xp, dtype = backend.namespace(values[0]), values[0].dtype
    if whole is not None:
        total = xp.array(whole)
        for place, value in zip(places, values, strict=True):
            total[place] += value
        return total
    apart, all_of_it = cut(places, shape)
    total = (xp.empty if all_of_it else xp.zeros)(shape, dtype)
    for place, value in zip(places, values, strict=True):
        if apart:
            total[place] = value
        else:
            total[place] += value
    return total


def cut(places: Sequence[Index], shape: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether slices lie apart along one axis, and whether they also hold every element."""
    axis = _cut_axis(places)
    if axis is None or axis >= len(shape):
        return False, False
    ranges = []
    for place in places:
        part = place[axis] if axis < len(place) else slice(None)
        if isinstance(part, slice):
            start, stop, step = part.indices(shape[axis])
            if step != 1:
                return False, False
            ranges.append((start, max(start, stop)))
        elif part is Ellipsis:
            ranges.append((0, shape[axis]))
        else:
            start = part + shape[axis] if part < 0 else part
            ranges.append((start, start + 1))
    end, whole = 0, True
    for start, stop in sorted(ranges):
        if start < end:
            return False, False
        whole = whole and start == end
        end = stop
    return True, whole and end == shape[axis]


def _cut_axis(places: Sequence[Index]) -> int | None:
    """The one axis on which slices differ from the whole; None where it is not so simple."""
    found = None
    for place in places:
        for axis, part in enumerate(place):
            if part is None or (part is Ellipsis and axis != len(place) - 1):
                return None
            if part is Ellipsis or (type(part) is slice and part == _ALL):
                continue
            if found is not None and axis != found:
                return None
            found = axis
    return found
