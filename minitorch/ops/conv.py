"""Convolution: `y[n,o,l] = Σ_k w[o,k] · cols[n,k,l] + b[o]`, cols being the patches of x.

The fast body takes a few images at a time, lays their patches out as one matrix that stays in the
cache, and multiplies once. Patches are made again for the backward pass instead of being kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import backend
from ..kernels import load_for
from .fused import Fused
from .unfold import Window, padded, taps, unfold_columns
from .wide import wide

_TILE_BYTES = 4 << 20
_SMALL = 1 << 13


def _definition(x: Any, weight: Any, bias: Any = None, *, window: Window, groups: int) -> Any:
    n, o = x.shape[0], weight.shape[0]
    oh, ow = window.output(*x.shape[2:])
    w = _grouped(weight, groups)
    cols = unfold_columns(x, window=window).reshape(n, groups, w.shape[2], oh * ow)
    y = (w @ cols).reshape(n, o, oh, ow)
    return y if bias is None else y + bias.reshape(-1, 1, 1)


def _grouped(weight: Any, groups: int) -> Any:
    """The weight as a matrix for each group, w_GOK."""
    o, c, kh, kw = weight.shape
    return weight.reshape(groups, o // groups, c * kh * kw)


def _kernels(x: Any, window: Window, oh: int, ow: int) -> Any:
    """The compiled bodies, where there is enough to do for several threads."""
    values = x.shape[0] * x.shape[1] * window.kernel[0] * window.kernel[1] * oh * ow
    return load_for("conv", x, least=0) if values >= _SMALL else None


def _patches(x: Any, window: Window, oh: int, ow: int) -> Any:
    """The patches of some images as c·kh·kw rows of n·oh·ow values."""
    n, c = x.shape[:2]
    kernels = _kernels(x, window, oh, ow)
    if kernels is not None:
        return kernels.patches(x, window, oh, ow)
    source = padded(x, window)
    cols = backend.namespace(x).empty((c, *window.kernel, n, oh, ow), x.dtype)
    for i, j, rows, columns in taps(window, oh, ow):
        cols[:, i, j] = source[:, :, rows, columns].swapaxes(0, 1)
    return cols.reshape(c * window.kernel[0] * window.kernel[1], n * oh * ow)


def _add_patches(out: Any, cols: Any, window: Window, oh: int, ow: int) -> None:
    """Adds patches to the images `out`, which are zero before."""
    kernels = _kernels(out, window, oh, ow)
    if kernels is not None:
        kernels.add_patches(out, cols, window, oh, ow)
        return
    n, c, h, w = out.shape
    (t, left), (b, right) = window.low, window.high
    xp = backend.namespace(out)
    total = xp.zeros((n, c, h + t + b, w + left + right), out.dtype)
    cols = cols.reshape(c, *window.kernel, n, oh, ow)
    for i, j, rows, columns in taps(window, oh, ow):
        total[:, :, rows, columns] += cols[:, i, j].swapaxes(0, 1)
    out[...] = total[:, :, t : t + h, left : left + w]


def _tiles(x: Any, weight: Any, groups: int, size: int) -> Iterator[slice]:
    """Ranges of images whose patches fit the cache."""
    row_bytes = max(1, weight[:1].size * groups * size * x.dtype.itemsize)
    step = max(1, _TILE_BYTES // row_bytes)
    for start in range(0, x.shape[0], step):
        yield slice(start, start + step)


def _pointwise(weight: Any, window: Window) -> bool:
    """True where the patches are the image itself."""
    return (
        tuple(weight.shape[2:]) == (1, 1)
        and window.stride == (1, 1)
        and not any(window.low + window.high)
    )


def _forward(x: Any, weight: Any, bias: Any, *, window: Window, groups: int) -> Any:
    xp, dtype = backend.namespace(x), x.dtype
    x, weight = wide(x), wide(weight)
    n, o = x.shape[0], weight.shape[0]
    oh, ow = window.output(*x.shape[2:])
    w = _grouped(weight, groups)
    if _pointwise(weight, window):
        y = xp.matmul(w, x.reshape(n, groups, w.shape[2], oh * ow)).reshape(n, o, oh, ow)
    else:
        y = xp.empty((n, o, oh, ow), x.dtype)
        for tile in _tiles(x, weight, groups, oh * ow):
            cols = _patches(x[tile], window, oh, ow)
            cols = cols.reshape(groups, w.shape[2], -1)
            product = xp.matmul(w, cols).reshape(o, -1, oh, ow)
            y[tile] = product.swapaxes(0, 1)
    if bias is not None:
        y += bias.reshape(-1, 1, 1).astype(y.dtype, copy=False)
    return y.astype(dtype, copy=False), ()


def _backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    weight: Any,
    bias: Any,
    *,
    window: Window,
    groups: int,
) -> list[Any]:
    kinds = [None if a is None else a.dtype for a in (x, weight, bias)]
    g, x, weight = wide(g), wide(x), wide(weight)
    body = _pointwise_backward if _pointwise(weight, window) else _tiled_backward
    dx, dw = body(g, needs, x, weight, window, groups)
    db = g.sum((0, 2, 3)) if needs[2] else None
    grads = (dx, dw, db)
    return [
        None if d is None else d.astype(kind, copy=False)
        for d, kind in zip(grads, kinds, strict=True)
    ]


def _tiled_backward(
    g: Any, needs: Sequence[bool], x: Any, weight: Any, window: Window, groups: int
) -> tuple[Any, Any]:
    xp, o = backend.namespace(x), weight.shape[0]
    oh, ow = g.shape[2:]
    w = _grouped(weight, groups)
    dx = xp.zeros(x.shape, x.dtype) if needs[0] else None
    dw = xp.zeros(w.shape, w.dtype) if needs[1] else None
    for tile in _tiles(x, weight, groups, oh * ow):
        columns = xp.ascontiguousarray(g[tile].swapaxes(0, 1)).reshape(groups, o // groups, -1)
        if dw is not None:
            cols = _patches(x[tile], window, oh, ow)
            cols = cols.reshape(groups, w.shape[2], -1)
            dw += xp.matmul(columns, cols.swapaxes(1, 2))
        if dx is not None:
            _add_patches(dx[tile], xp.matmul(w.swapaxes(1, 2), columns), window, oh, ow)
    return dx, None if dw is None else dw.reshape(weight.shape)


def _pointwise_backward(
    g: Any, needs: Sequence[bool], x: Any, weight: Any, window: Window, groups: int
) -> tuple[Any, Any]:
    xp, (n, o), size = backend.namespace(x), g.shape[:2], g.shape[2] * g.shape[3]
    w = _grouped(weight, groups)
    g = g.reshape(n, groups, o // groups, size)
    dx = dw = None
    if needs[0]:
        dx = xp.matmul(w.swapaxes(1, 2), g).reshape(x.shape)
    if needs[1]:
        dw = xp.zeros(w.shape, w.dtype)
        columns = x.reshape(n, groups, w.shape[2], size).swapaxes(2, 3)
        for i in range(n):
            dw += xp.matmul(g[i], columns[i])
        dw = dw.reshape(weight.shape)
    return dx, dw


def _supports(x: Any, weight: Any, bias: Any, *, window: Window, groups: int) -> bool:
    return x.dtype == weight.dtype


convolution = Fused(_definition, _forward, _backward, supports=_supports, bilinear=True)
convolution.name = "convolution"
