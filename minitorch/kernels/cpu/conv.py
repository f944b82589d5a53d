"""Patches of images and back, in parallel over the rows of the patch matrix and over images."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .instructions import VECTOR_BYTES
from .kernel import kernel
from .lines import add_line, take
from .memory import clear, copy


@kernel()
def _patches(begin, end, x, cols, sizes, downs, acrosses):  # type: ignore[no-untyped-def]
    images, channels, height, width, high, wide, down, across = sizes
    for item in range(begin, end):
        rest, j = item // len(acrosses), item % len(acrosses)
        channel, i = rest // len(downs), rest % len(downs)
        top, bottom, row = downs[i]
        left, right, column = acrosses[j]
        for m in range(images):
            out = (item * images + m) * high * wide
            source = ((m * channels + channel) * height + row) * width + column
            clear(cols, out, top * wide)
            clear(cols, out + bottom * wide, (high - bottom) * wide)
            if wide == width and right - left == wide and across == 1 and down == 1:
                copy(x, source, cols, out + top * wide, (bottom - top) * wide)
                continue
            for a in range(top, bottom):
                to, end_of_line = out + a * wide + left, out + (a + 1) * wide
                for b in range(out + a * wide, to):
                    cols[b] = 0
                take(x, source, across, cols, to, right - left)
                for b in range(to + right - left, end_of_line):
                    cols[b] = 0
                source += down * width


@kernel()
def _add_patches(begin, end, out, cols, sizes, downs, acrosses):  # type: ignore[no-untyped-def]
    images, channels, height, width, high, wide, down, across = sizes
    window, size, one = len(downs) * len(acrosses), height * width, out.dtype.type(1)
    plane = np.empty(size + VECTOR_BYTES // out.itemsize, out.dtype)
    for item in range(begin, end):
        image, channel = item // channels, item % channels
        clear(plane, 0, size)
        for k in range(window):
            top, bottom, row = downs[k // len(acrosses)]
            left, right, to = acrosses[k % len(acrosses)]
            source = ((channel * window + k) * images + image) * high * wide + top * wide + left
            to += row * width
            for _ in range(top, bottom):
                if across == 1:
                    add_line(cols, source, right - left, one, plane, to, True)
                else:
                    for b in range(right - left):
                        plane[to + b * across] += cols[source + b]
                source += wide
                to += down * width
        copy(plane, 0, out, item * size, size)


def _ends(size: int, outputs: int, axis: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """For each element of the window the outputs that see the image there, and its first place."""
    kernel, stride, low, _, dilation = axis
    found = []
    for i in range(kernel):
        offset = i * dilation - low
        first = min(outputs, max(0, -(offset // stride)))
        last = max(first, min(outputs, (size - 1 - offset) // stride + 1))
        found.append((first, last, first * stride + offset if last > first else 0))
    return found


def _tables(shape: tuple[int, ...], window: Any, outputs: tuple[int, int]) -> tuple[Any, ...]:
    down, across = zip(*window, strict=True)
    ends = (
        np.array(_ends(*axis), np.int64)
        for axis in zip(shape[2:], outputs, (down, across), strict=True)
    )
    return ((*map(int, shape), *outputs, down[1], across[1]), *ends)


def patches(x: Any, window: Any, oh: int, ow: int) -> Any:
    """The patches of x_NCHW as c·kh·kw rows of n·oh·ow values."""
    rows = x.shape[1] * math.prod(window[0])
    cols = np.empty(rows * len(x) * oh * ow, x.dtype)
    flat = np.ascontiguousarray(x).reshape(-1)
    _patches(rows, flat, cols, *_tables(x.shape, window, (oh, ow)))
    return cols.reshape(rows, -1)


def add_patches(out: Any, cols: Any, window: Any, oh: int, ow: int) -> None:
    """Writes the sums of patches to the images `out`."""
    planes = out.shape[0] * out.shape[1]
    flat = np.ascontiguousarray(cols).reshape(-1)
    _add_patches(planes, out.reshape(-1), flat, *_tables(out.shape, window, (oh, ow)))
