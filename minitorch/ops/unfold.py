"""Patches of images as columns, and the sum of columns back into images.

Both are linear and each is the gradient of the other, so that everything built on them has
gradients of any order. Shapes: x_NCHW, cols_NCKL with K = KH·KW and L = OH·OW.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import backend
from .primitive import Primitive


class Window(NamedTuple):
    """A sliding window over two axes; each pair is (height, width).

    Attributes:
        kernel: Size.
        stride: Step from one window to the next.
        low: Padding before the first element.
        high: Padding after the last element.
        dilation: Step from one element in the window to the next.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    low: tuple[int, int] = (0, 0)
    high: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)

    def output(self, height: int, width: int) -> tuple[int, int]:
        """How many windows fit on each axis of an image of that size."""
        sizes = zip((height, width), *self, strict=True)
        oh, ow = ((n + lo + hi - d * (k - 1) - 1) // s + 1 for n, k, s, lo, hi, d in sizes)
        return oh, ow


def padded(x: Any, window: Window, value: float = 0.0) -> Any:
    """`x` with the window's padding around its last two axes; itself where there is none."""
    (t, left), (b, right) = window.low, window.high
    if not (t or left or b or right):
        return x
    h, w = x.shape[-2:]
    out = backend.namespace(x).full((*x.shape[:-2], h + t + b, w + left + right), value, x.dtype)
    # Rows that no window reaches have negative padding: they are cut off.
    out[..., t : t + h, left : left + w] = x[..., : out.shape[-2] - t, : out.shape[-1] - left]
    return out


def taps(window: Window, oh: int, ow: int) -> Any:
    """Yields (i, j, rows, columns): the slices of a padded image under element (i, j)."""
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.stride, window.dilation
    for i in range(kh):
        rows = slice(i * dh, i * dh + sh * (oh - 1) + 1, sh)
        for j in range(kw):
            yield i, j, rows, slice(j * dw, j * dw + sw * (ow - 1) + 1, sw)


def unfold_array(x: Any, *, window: Window) -> Any:
    """cols_NCKL of x_NCHW."""
    n, c, h, w = x.shape
    oh, ow = window.output(h, w)
    kh, kw = window.kernel
    source = padded(x, window)
    cols = backend.namespace(x).empty((n, c, kh, kw, oh, ow), x.dtype)
    for i, j, rows, columns in taps(window, oh, ow):
        cols[:, :, i, j] = source[:, :, rows, columns]
    return cols.reshape(n, c, kh * kw, oh * ow)


def fold_array(cols: Any, *, window: Window, size: tuple[int, int]) -> Any:
    """x_NCHW of the given size: the sum of cols_NCKL where windows overlap."""
    n, c = cols.shape[:2]
    h, w = size
    oh, ow = window.output(h, w)
    kh, kw = window.kernel
    (t, left), (b, right) = window.low, window.high
    cols = cols.reshape(n, c, kh, kw, oh, ow)
    out = backend.namespace(cols).zeros((n, c, h + t + b, w + left + right), cols.dtype)
    for i, j, rows, columns in taps(window, oh, ow):
        out[:, :, rows, columns] += cols[:, :, i, j]
    return out[:, :, t : t + h, left : left + w]


def _unfold_rule(g: Any, x: Any, *, window: Window) -> Any:
    return fold_columns(g, window=window, size=tuple(x.shape[-2:]))


def _fold_rule(g: Any, *, window: Window, size: tuple[int, int]) -> Any:
    return unfold_columns(g, window=window)


unfold_columns = Primitive("unfold", unfold_array, (_unfold_rule,), (0,))
fold_columns = Primitive("fold", fold_array, (_fold_rule,))
