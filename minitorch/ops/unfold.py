"""Patches of images as columns, and the sum of columns back into images.

Both are linear and each is the gradient of the other, so that everything built on them has
gradients of any order. Shapes: x_NC… with any number of axes behind the channels, cols_NCKL with
K elements in a window and L windows; for images K = KH·KW and L = OH·OW.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import backend
from .primitive import Primitive


class Window(NamedTuple):
    """A sliding window over the last axes; each tuple has a number for every axis.

    Attributes:
        kernel: Size.
        stride: Step from one window to the next.
        low: Padding before the first element.
        high: Padding after the last element; negative where no window reaches the last elements.
        dilation: Step from one element in the window to the next.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    dilation: tuple[int, ...]

    def output(self, *sizes: int) -> tuple[int, ...]:
        """How many windows fit on each axis of an image of that size."""
        return _output(self, sizes)


@functools.lru_cache(maxsize=512)
def _output(window: Window, sizes: tuple[int, ...]) -> tuple[int, ...]:
    axes = zip(sizes, *window, strict=True)
    return tuple((n + lo + hi - d * (k - 1) - 1) // s + 1 for n, k, s, lo, hi, d in axes)


def padded(x: Any, window: Window, value: float = 0.0) -> Any:
    """`x` with the window's padding around its last axes; itself where there is none."""
    if not any(window.low) and not any(window.high):
        return x
    axes = len(window.kernel)
    sizes = tuple(x.shape[-axes:])
    total = [n + lo + hi for n, lo, hi in zip(sizes, window.low, window.high, strict=True)]
    out = backend.namespace(x).full((*x.shape[:-axes], *total), value, x.dtype)
    # Rows that no window reaches have negative padding: they are cut off.
    target = [slice(lo, lo + n) for n, lo in zip(sizes, window.low, strict=True)]
    source = [slice(0, m - lo) for m, lo in zip(total, window.low, strict=True)]
    out[(..., *target)] = x[(..., *source)]
    return out


def taps(window: Window, outputs: tuple[int, ...]) -> Iterator[tuple[Any, tuple[slice, ...]]]:
    """Yields (position in the window, slices of a padded image under that element)."""
    for place in itertools.product(*map(range, window.kernel)):
        axes = zip(place, window.stride, window.dilation, outputs, strict=True)
        yield place, tuple(slice(i * d, i * d + s * (o - 1) + 1, s) for i, s, d, o in axes)


def unfold_array(x: Any, *, window: Window) -> Any:
    """cols_NCKL of x_NC…."""
    n, c = x.shape[:2]
    outputs = window.output(*x.shape[2:])
    source = padded(x, window)
    cols = backend.namespace(x).empty((n, c, *window.kernel, *outputs), x.dtype)
    for place, under in taps(window, outputs):
        cols[(slice(None), slice(None), *place)] = source[(..., *under)]
    return cols.reshape(n, c, math.prod(window.kernel), math.prod(outputs))


def fold_array(cols: Any, *, window: Window, size: tuple[int, ...]) -> Any:
    """x_NC… of the given size: the sum of cols_NCKL where windows overlap."""
    n, c = cols.shape[:2]
    outputs = window.output(*size)
    cols = cols.reshape(n, c, *window.kernel, *outputs)
    return sum_taps(cols, (n, c), window, size)


def sum_taps(cols: Any, lead: tuple[int, int], window: Window, size: tuple[int, ...]) -> Any:
    """The sum of patches whose axes are (*lead, *kernel, *outputs), in images (*lead, *size)."""
    outputs = tuple(cols.shape[-len(size) :])
    sides = zip(size, window.low, window.high, strict=True)
    total = tuple(n + lo + max(hi, 0) for n, lo, hi in sides)
    out = backend.namespace(cols).zeros((*lead, *total), cols.dtype)
    for place, under in taps(window, outputs):
        out[(..., *under)] += cols[(slice(None), slice(None), *place)]
    inside = [slice(lo, lo + n) for n, lo in zip(size, window.low, strict=True)]
    return out[(..., *inside)]


def _unfold_rule(g: Any, x: Any, *, window: Window) -> Any:
    return fold_columns(g, window=window, size=tuple(x.shape[2:]))


def _fold_rule(g: Any, *, window: Window, size: tuple[int, ...]) -> Any:
    return unfold_columns(g, window=window)


unfold_columns = Primitive("unfold", unfold_array, (_unfold_rule,), (0,))
fold_columns = Primitive("fold", fold_array, (_fold_rule,))
