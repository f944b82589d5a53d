"""Convolution of float32 images as one product with the patches of the whole batch, on panels.

Many weights and few places ask for it: each weight is then read once, where `correlate` reads it
for each part of the batch. Patches are a row for each channel and element of the window, and a
column for each place of each image. Shapes: x_NCHW, w_OCKK, y_NOHW.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .conv import add_patches, patches
from .kernel import kernel
from .panels import Jobs

_POINT = ((1, 1), (1, 1), (0, 0), (0, 0), (1, 1))  # a window of one element


@kernel()
def _add_bias(first, last, y, bias):  # type: ignore[no-untyped-def]
    for p in range(first, last):
        line, number = y[p], bias[p % len(bias)]
        for k in range(len(line)):
            line[k] += number


def add_bias(y: Any, bias: Any) -> None:
    """y_NO… += bias_O."""
    planes = y.shape[0] * y.shape[1]
    _add_bias(planes, y.reshape(planes, -1), np.ascontiguousarray(bias))


def _product(a: Any, b: Any) -> Any:
    c = np.empty((len(a), b.shape[1]), np.float32)
    jobs = Jobs()
    jobs.add_product(c, a, b)
    jobs.compute()
    return c


def _exchanged(a: Any) -> Any:
    """a_NCHW as a matrix_C(NHW), or such a matrix with its own axes back."""
    return patches(a, _POINT, *a.shape[2:])


def forward(x: Any, weight: Any, bias: Any, window: Any, groups: int) -> Any:
    """y_NOHW of x_NCHW; there is one group."""
    outputs, (n, o) = window.output(*x.shape[2:]), (len(x), len(weight))
    y = _product(weight.reshape(o, -1), patches(x, window, *outputs))
    y = _exchanged(y.reshape(o, n, *outputs)).reshape(n, o, *outputs)
    if bias is not None:
        add_bias(y, bias)
    return y


def input_gradient(g: Any, weight: Any, window: Any, groups: int, size: tuple[int, ...]) -> Any:
    """The gradient of x_NCHW of the given size."""
    n, c, outputs = len(g), weight.shape[1], tuple(g.shape[2:])
    columns = _product(weight.reshape(len(weight), -1).T, _exchanged(g))
    if window == _POINT:
        return _exchanged(columns.reshape(c, n, *size)).reshape(n, c, *size)
    dx = np.empty((n, c, *size), np.float32)
    add_patches(dx, columns, window, *outputs)
    return dx


def weight_gradient(g: Any, x: Any, weight: Any, window: Any, groups: int) -> Any:
    """The gradient of the weight."""
    dw = _product(_exchanged(g), patches(x, window, *g.shape[2:]).T)
    return dw.reshape(weight.shape)
