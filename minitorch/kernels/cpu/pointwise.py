"""Convolution of float32 images by 1 × 1: each image is multiplied with the weights, on panels.

A stride or padding chooses places first. Where images are so small that their columns would not
fill panels, or the sums of the weight's gradient would be larger than the images, the images are
put beside each other (`im2col.py`). Shapes: x_NCHW, w_OC11, y_NOHW.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..conv_plan import is_plain, one_matrix_pays, one_sum_pays
from . import im2col
from .conv import add_patches, patches
from .instructions import VECTOR_BYTES
from .kernel import kernel
from .lines import put_pairs, take
from .memory import clear
from .panels import Jobs


@kernel()
def _choose(first, last, x, out, sizes):  # type: ignore[no-untyped-def]
    """The places of each plane that a stride leaves."""
    height, width, high, wide, down, across = sizes
    for p in range(first, last):
        for row in range(high):
            source, to = (p * height + row * down) * width, (p * high + row) * wide
            take(x, source, across, out, to, wide)


@kernel()
def _put_back(first, last, values, out, sizes):  # type: ignore[no-untyped-def]
    """The reverse: zeros in between, of which as many as a vector has lie behind the values."""
    height, width, high, wide, down, across = sizes
    lanes = VECTOR_BYTES // values.itemsize
    for p in range(first, last):
        clear(out, p * height * width, height * width)
        for row in range(high):
            source, to, done = (p * high + row) * wide, (p * height + row * down) * width, 0
            while across == 2 and 2 * (done + lanes) <= width and done + lanes <= wide:
                put_pairs(values, source + done, len(values) - lanes, out, to + 2 * done)
                done += lanes
            for k in range(done, wide):
                out[to + k * across] = values[source + k]


def _sizes(size: tuple[int, ...], window: Any, outputs: tuple[int, int]) -> tuple[int, ...]:
    return (*size, *outputs, *window.stride)


def _matrices(x: Any, window: Any, outputs: tuple[int, int]) -> Any:
    """The places that outputs see, as x_NCL."""
    n, c, *size = x.shape
    if is_plain(window):
        return np.ascontiguousarray(x).reshape(n, c, -1)
    if any(window.low) or max(window.high) > 0:
        return patches(x.reshape(1, n * c, *size), window, *outputs).reshape(n, c, -1)
    out = np.empty((n, c, math.prod(outputs)), np.float32)
    flat = np.ascontiguousarray(x).reshape(-1)
    _choose(n * c, flat, out.reshape(-1), _sizes(size, window, outputs))
    return out


def _weights(weight: Any, images: int, turned: bool) -> Any:
    """w_OC, or w_CO, for each image, without a copy."""
    w, (o, c) = np.ascontiguousarray(weight), weight.shape[:2]
    shape, steps = (o, c), (c * w.itemsize, w.itemsize)
    if turned:
        shape, steps = shape[::-1], steps[::-1]
    return np.ndarray((images, *shape), w.dtype, w, 0, (0, *steps))


def _multiply(c: Any, a: Any, b: Any) -> Any:
    """`c = a_ZMK @ b_ZKN`."""
    jobs = Jobs()
    jobs.add_product(c, a, b)
    jobs.compute()
    return c


def forward(x: Any, weight: Any, bias: Any, window: Any, groups: int) -> Any:
    """y_NOHW of x_NCHW; there is one group."""
    outputs = window.output(*x.shape[2:])
    (n, c), o = x.shape[:2], len(weight)
    if one_matrix_pays(n, c, o, math.prod(outputs)):
        return im2col.forward(x, weight, bias, window, groups)
    y = np.empty((n, o, *outputs), np.float32)
    _multiply(y.reshape(n, o, -1), _weights(weight, n, False), _matrices(x, window, outputs))
    if bias is not None:
        im2col.add_bias(y, bias)
    return y


def input_gradient(g: Any, weight: Any, window: Any, groups: int, size: tuple[int, ...]) -> Any:
    """The gradient of x_NCHW of the given size."""
    outputs = tuple(g.shape[2:])
    (n, o), c = g.shape[:2], weight.shape[1]
    if one_matrix_pays(n, c, o, math.prod(outputs)):
        return im2col.input_gradient(g, weight, window, groups, size)
    g = np.ascontiguousarray(g).reshape(n, o, -1)
    dx, w = np.empty((n, c, *size), np.float32), _weights(weight, n, True)
    if is_plain(window):
        _multiply(dx.reshape(n, c, -1), w, g)
        return dx
    count = n * c * math.prod(outputs)
    columns = np.empty(count + VECTOR_BYTES // dx.itemsize, np.float32)
    columns[count:] = 0
    _multiply(columns[:count].reshape(n, c, -1), w, g)
    if any(window.low) or max(window.high) > 0:
        add_patches(dx.reshape(1, n * c, *size), columns[:count], window, *outputs)
    else:
        _put_back(n * c, columns, dx.reshape(-1), _sizes(size, window, outputs))
    return dx


def weight_gradient(g: Any, x: Any, weight: Any, window: Any, groups: int) -> Any:
    """The gradient of the weight."""
    outputs = tuple(g.shape[2:])
    (n, o), c = g.shape[:2], weight.shape[1]
    if one_sum_pays(n, c, o, math.prod(outputs)):
        return im2col.weight_gradient(g, x, weight, window, groups)
    g = np.ascontiguousarray(g).reshape(n, o, -1)
    sums = np.empty((n, o, c), np.float32)
    _multiply(sums, g, _matrices(x, window, outputs).transpose(0, 2, 1))
    if n == 1:
        return sums.reshape(weight.shape)
    dw, jobs = np.empty(weight.shape, np.float32), Jobs()
    jobs.add_sums(dw.reshape(-1), sums.reshape(n, -1))
    jobs.compute()
    return dw
