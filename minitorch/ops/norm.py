"""layer_norm and batch_norm, each one node; means and variances are float32 or wider.

`y = (x - mean) / sqrt(var + eps) · weight + bias`, with the biased variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import backend
from ..kernels import load_for
from .fused import Fused
from .wide import wide

# layer_norm: x_ND, statistics over D, which is all of `shape`.


def _layer_definition(
    x: Any, weight: Any = None, bias: Any = None, *, shape: tuple[int, ...], eps: float
) -> Any:
    axes = tuple(range(-len(shape), 0))
    centred = x - x.mean(axes, keepdim=True)
    y = centred / ((centred * centred).mean(axes, keepdim=True) + eps).sqrt()
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def _rows(x: Any, size: int) -> tuple[int, int]:
    return x.size // size if size else 0, size


def _layer_forward(
    x: Any, weight: Any, bias: Any, *, shape: tuple[int, ...], eps: float
) -> tuple[Any, tuple[Any, ...]]:
    size = math.prod(shape)
    rows = x.reshape(_rows(x, size))
    w, b = (None if a is None else a.reshape(-1) for a in (weight, bias))
    kernels = load_for("norm", rows, w, b)
    if kernels is not None:
        y, mean, rstd = kernels.layer_norm(rows, w, b, eps)
        return y.reshape(x.shape), (mean, rstd)
    rows = wide(rows)
    mean = rows.mean(1, keepdims=True)
    y = rows - mean
    rstd = 1 / backend.namespace(x).sqrt((y * y).mean(1, keepdims=True) + eps)
    y *= rstd
    if w is not None:
        y *= w
    if b is not None:
        y += b
    return y.reshape(x.shape).astype(x.dtype, copy=False), (mean, rstd)


def _layer_backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    weight: Any,
    bias: Any,
    *,
    shape: tuple[int, ...],
    eps: float,
) -> list[Any]:
    mean, rstd = residuals
    size = math.prod(shape)
    rows, g = x.reshape(_rows(x, size)), g.reshape(_rows(x, size))
    w = None if weight is None else weight.reshape(-1)
    kernels = load_for("norm", rows, g, w)
    if kernels is not None:
        dx, dw, db = kernels.layer_norm_backward(g, rows, w, mean, rstd)
    else:
        g, normal = wide(g), (wide(rows) - mean) * rstd
        dw = (g * normal).sum(0) if needs[1] else None
        db = g.sum(0) if needs[2] else None
        gw = g if w is None else g * w
        dx = gw - gw.mean(1, keepdims=True)
        dx -= normal * (gw * normal).mean(1, keepdims=True)
        dx *= rstd
    return [
        _like(d, a, need) for d, a, need in zip((dx, dw, db), (x, weight, bias), needs, strict=True)
    ]


def _like(d: Any, a: Any, need: bool) -> Any:
    return d.reshape(a.shape).astype(a.dtype, copy=False) if need else None


layer_norm_op = Fused(
    _layer_definition,
    _layer_forward,
    _layer_backward,
    supports=lambda x, weight, bias, *, shape, eps: True,
)
layer_norm_op.name = "layer_norm"


# batch_norm: x_NCL, statistics over N and L.


def _three(x: Any) -> tuple[int, int, int]:
    """The shape N, C, L of x_NC…."""
    return x.shape[0], x.shape[1], math.prod(x.shape[2:])


def statistics(x: Any) -> tuple[Any, Any]:
    """Mean and biased variance of each channel of the array x_NC…, float32 or wider.

    Those of an empty batch are zeros.
    """
    x = x.reshape(_three(x))
    if not x.size:
        zeros = backend.namespace(x).zeros(x.shape[1], wide(x).dtype)
        return zeros, zeros.copy()
    kernels = load_for("batch_norm", x) if x.shape[2] > 1 else None
    if kernels is not None:
        return kernels.channel_statistics(x)
    x = wide(x)
    mean = x.mean((0, 2))
    centred = x - mean[:, None]
    return mean, (centred * centred).mean((0, 2))


def _batch_definition(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    mean: Any = None,
    var: Any = None,
    *,
    eps: float,
    training: bool,
) -> Any:
    channel = (1, -1) + (1,) * (x.ndim - 2)
    if training:
        axes = (0, *range(2, x.ndim))
        centred = x - x.mean(axes, keepdim=True)
        spread = (centred * centred).mean(axes, keepdim=True)
    else:
        centred, spread = x - mean.reshape(channel), var.reshape(channel)
    y = centred / (spread + eps).sqrt()
    y = y if weight is None else y * weight.reshape(channel)
    return y if bias is None else y + bias.reshape(channel)


def _batch_forward(
    x: Any, weight: Any, bias: Any, mean: Any, var: Any, *, eps: float, training: bool
) -> tuple[Any, tuple[Any, ...]]:
    rstd = 1 / backend.namespace(x).sqrt(wide(var) + eps)
    scale = rstd if weight is None else rstd * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    kernels = load_for("batch_norm", x, scale, shift) if x.ndim > 2 else None
    if kernels is not None:
        y = kernels.channel_affine(x.reshape(_three(x)), scale, shift)
    else:
        y = wide(x).reshape(_three(x)) * scale[:, None]
        y += shift[:, None]
    return y.reshape(x.shape).astype(x.dtype, copy=False), (rstd,)


def _batch_backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    *,
    eps: float,
    training: bool,
) -> list[Any]:
    (rstd,) = residuals
    shape = _three(x)
    scale = rstd if weight is None else rstd * weight
    kernels = load_for("batch_norm", x, g, mean, rstd, scale) if x.ndim > 2 else None
    if kernels is not None:
        dx, dw, db = kernels.batch_norm_backward(
            g.reshape(shape), x.reshape(shape), mean, rstd, scale, training
        )
    else:
        g3 = wide(g).reshape(shape)
        normal = (wide(x).reshape(shape) - mean[:, None]) * rstd[:, None]
        db = g3.sum((0, 2))
        dw = (g3 * normal).sum((0, 2))
        dx = g3
        if training:
            count = max(1, normal.shape[0] * normal.shape[2])
            dx = g3 - (db / count)[:, None] - normal * (dw / count)[:, None]
        dx = dx * scale[:, None]
    grads = [
        _like(d, a, need)
        for d, a, need in zip((dx, dw, db), (x, weight, bias), needs[:3], strict=True)
    ]
    return [*grads, None, None]


batch_norm_op = Fused(
    _batch_definition,
    _batch_forward,
    _batch_backward,
    supports=lambda *arrays, eps, training: True,
)
batch_norm_op.name = "batch_norm"
"""`batch_norm(x, weight, bias, mean, var, *, eps, training)`: in training `mean` and `var` are the
statistics of x itself, and the gradient flows through them."""


# group_norm: x_NC…, statistics over the channels of each group of each sample.


def _group_definition(
    x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float
) -> Any:
    rows = x.reshape(x.shape[0], groups, math.prod(x.shape[1:]) // groups)
    y = _layer_definition(rows, shape=(rows.shape[2],), eps=eps).reshape(x.shape)
    channel = (1, -1) + (1,) * (x.ndim - 2)
    y = y if weight is None else y * weight.reshape(channel)
    return y if bias is None else y + bias.reshape(channel)


def _affine(x: Any, scale: Any, shift: Any) -> Any:
    """x_1CL · scale_C + shift_C."""
    kernels = load_for("batch_norm", x, scale, shift)
    if kernels is not None:
        return kernels.channel_affine(x, scale, shift)
    return x * scale[:, None] + shift[:, None]


def _per_plane(a: Any, n: int, c: int) -> Any:
    """A number for each group of each sample, or for each channel, as one for each plane."""
    a = a.reshape(n, -1, 1) if a.ndim > 1 else a.reshape(1, -1)
    parts = c // a.shape[1] if a.ndim > 2 else 1
    shape = (n, a.shape[1], parts) if a.ndim > 2 else (n, c)
    return backend.namespace(a).broadcast_to(a, shape).reshape(n * c)


def _group_forward(
    x: Any, weight: Any, bias: Any, *, groups: int, eps: float
) -> tuple[Any, tuple[Any, ...]]:
    n, c = x.shape[:2]
    wider = wide(x)
    mean, var = statistics(wider.reshape(1, n * groups, -1))
    rstd = 1 / backend.namespace(x).sqrt(var + eps)
    scale = _per_plane(rstd.reshape(n, groups), n, c)
    if weight is not None:
        scale = scale * _per_plane(wide(weight), n, c)
    shift = -_per_plane(mean.reshape(n, groups), n, c) * scale
    if bias is not None:
        shift = shift + _per_plane(wide(bias), n, c)
    y = _affine(wider.reshape(1, n * c, -1), scale, shift)
    return y.reshape(x.shape).astype(x.dtype, copy=False), (mean, rstd)


def _group_backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    weight: Any,
    bias: Any,
    *,
    groups: int,
    eps: float,
) -> list[Any]:
    (n, c), (mean, rstd) = x.shape[:2], residuals
    flat, g = wide(x).reshape(1, n * c, -1), wide(g).reshape(1, n * c, -1)
    centre, spread = (_per_plane(a.reshape(n, groups), n, c) for a in (mean, rstd))
    factor = None if weight is None else _per_plane(wide(weight), n, c)
    scale = spread if factor is None else spread * factor
    kernels = load_for("batch_norm", flat, g, centre, spread, scale)
    if kernels is not None:
        dx, dw, db = kernels.batch_norm_backward(g, flat, centre, spread, scale, False)
    else:
        dx, db = g * scale[:, None], g.sum((0, 2))
        dw = (g * (flat - centre[:, None])).sum((0, 2)) * spread
    # The gradient through the mean and the variance of the group: a·x + b in each group.
    slope, offset = (a if factor is None else a * factor for a in (dw, db))
    slope, offset = (a.reshape(n * groups, -1).sum(1) for a in (slope, offset))
    size = max(1, flat.size // (n * groups)) if n else 1
    slope = -rstd * rstd * slope / size
    offset = -rstd * offset / size - slope * mean
    part = _affine(flat.reshape(1, n * groups, -1), slope, offset)
    dx = dx.reshape(x.shape) + part.reshape(x.shape)
    grads = (dx, dw.reshape(n, c).sum(0), db.reshape(n, c).sum(0))
    return [_like(d, a, need) for d, a, need in zip(grads, (x, weight, bias), needs, strict=True)]


group_norm_op = Fused(
    _group_definition,
    _group_forward,
    _group_backward,
    supports=lambda x, weight, bias, *, groups, eps: x.size > 0,
)
group_norm_op.name = "group_norm"
