"""layer_norm, rms_norm, batch_norm and group_norm, each one node.

`y = (x - mean) / sqrt(var + eps) · weight + bias`, with the biased variance; means and variances
are float32 or wider.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import backend
from ..kernels import load_for
from .fused import Fused
from .primitive import cast
from .wide import wide, wide_dtype

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


def _stacked(mean: Any, rstd: Any) -> Any:
    """What backward needs of the statistics of rows, in two lines."""
    return backend.namespace(mean).concatenate((mean.reshape(1, -1), rstd.reshape(1, -1)))


def _layer_forward(
    x: Any, weight: Any, bias: Any, *, shape: tuple[int, ...], eps: float
) -> tuple[Any, tuple[Any, ...]]:
    size = math.prod(shape)
    kernels = load_for("norm", x, weight, bias)
    if kernels is not None:
        y, stats = kernels.layer_norm(x, weight, bias, size, eps)
        return y, (stats,)
    rows = wide(x.reshape(_rows(x, size)))
    w, b = (None if a is None else a.reshape(-1) for a in (weight, bias))
    mean = rows.mean(1, keepdims=True)
    y = rows - mean
    rstd = 1 / backend.namespace(x).sqrt((y * y).mean(1, keepdims=True) + eps)
    y *= rstd
    if w is not None:
        y *= w
    if b is not None:
        y += b
    return y.reshape(x.shape).astype(x.dtype, copy=False), (_stacked(mean, rstd),)


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
    onto: Any = None,
) -> list[Any]:
    size = math.prod(shape)
    kernels = load_for("norm", x, g, weight, bias, onto)
    if kernels is not None:
        dx, dw, db = kernels.layer_norm_backward(g, x, weight, *residuals, size, onto)
        if len(shape) == 1:
            return [dx, dw, db]
    else:
        rows, g = wide(x.reshape(_rows(x, size))), wide(g.reshape(_rows(x, size)))
        w = None if weight is None else weight.reshape(-1)
        mean, rstd = residuals[0][..., None]
        normal = (rows - mean) * rstd
        dw = (g * normal).sum(0) if needs[1] else None
        db = g.sum(0) if needs[2] else None
        gw = g if w is None else g * w
        dx = gw - gw.mean(1, keepdims=True)
        dx -= normal * (gw * normal).mean(1, keepdims=True)
        dx = _added(dx * rstd, x, onto)
    return [
        _like(d, a, need) for d, a, need in zip((dx, dw, db), (x, weight, bias), needs, strict=True)
    ]


def _added(dx: Any, x: Any, onto: Any) -> Any:
    """A gradient of rows like x, with what has flowed into x before."""
    dx = _like(dx, x, True)
    return dx if onto is None else dx + onto


def _like(d: Any, a: Any, need: bool) -> Any:
    if not need:
        return None
    d = d if d.shape == a.shape else d.reshape(a.shape)
    return d if d.dtype == a.dtype else d.astype(a.dtype)


layer_norm_op = Fused(
    _layer_definition,
    _layer_forward,
    _layer_backward,
    adds_onto=True,
)
layer_norm_op.name = "layer_norm"


# rms_norm: x_ND, the mean square over D, which is all of `shape`.


def _rms_definition(x: Any, weight: Any = None, *, shape: tuple[int, ...], eps: float) -> Any:
    axes, full = tuple(range(-len(shape), 0)), cast(x, wide_dtype(x.dtype.numpy))
    y = full * ((full * full).mean(axes, keepdim=True) + eps).rsqrt()
    return cast(y if weight is None else y * weight, x.dtype.numpy)


def _rms_forward(
    x: Any, weight: Any, *, shape: tuple[int, ...], eps: float
) -> tuple[Any, tuple[Any, ...]]:
    size = math.prod(shape)
    kernels = load_for("norm", x, weight)
    if kernels is not None:
        y, stats = kernels.rms_norm(x, weight, size, eps)
        return y, (stats,)
    rows = wide(x.reshape(_rows(x, size)))
    w = None if weight is None else weight.reshape(-1)
    factor = 1 / backend.namespace(x).sqrt((rows * rows).mean(1, keepdims=True) + eps)
    y = rows * factor
    y = y if w is None else y * wide(w)
    zeros = backend.namespace(x).zeros_like(factor)
    return y.reshape(x.shape).astype(x.dtype, copy=False), (_stacked(zeros, factor),)


def _rms_backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    weight: Any,
    *,
    shape: tuple[int, ...],
    eps: float,
    onto: Any = None,
) -> list[Any]:
    size = math.prod(shape)
    kernels = load_for("norm", x, g, weight, onto)
    if kernels is not None:
        dx, dw = kernels.rms_norm_backward(g, x, weight, *residuals, size, onto)
    else:
        rows, g = wide(x.reshape(_rows(x, size))), wide(g.reshape(_rows(x, size)))
        w = None if weight is None else weight.reshape(-1)
        factor = residuals[0][1][:, None]
        normal = rows * factor
        dw = (g * normal).sum(0) if needs[1] else None
        gw = g if w is None else g * w
        dx = (gw - normal * (gw * normal).mean(1, keepdims=True)) * factor
        dx = _added(dx, x, onto)
    return [_like(d, a, need) for d, a, need in zip((dx, dw), (x, weight), needs, strict=True)]


rms_norm_op = Fused(
    _rms_definition,
    _rms_forward,
    _rms_backward,
    supports=lambda x, weight, *, shape, eps: x.dtype.kind != "c" and x.size > 0,
    adds_onto=True,
)
rms_norm_op.name = "rms_norm"


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


def move_statistics(
    x: Any, mean: Any, var: Any, running_mean: Any, running_var: Any, share: float
) -> bool:
    """`running += share · (value - running)` for both at once; False where that is not done.

    Args:
        x: The batch.
        mean, var: Its statistics, the biased variance.
        running_mean, running_var: The arrays that move; the variance is unbiased.
        share: Of the new values.
    """
    kernels = load_for("batch_norm", x, mean, var, running_mean, running_var)
    if kernels is None or not _is_plain(running_mean) or not _is_plain(running_var):
        return False
    kernels.move(mean, var, running_mean, running_var, share, x.size // len(mean))
    return True


def _is_plain(a: Any) -> bool:
    flags = a.flags
    return bool(flags.c_contiguous and flags.writeable)


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
    three = _three(x)
    kernels = load_for("batch_norm", x, weight, bias, mean, var) if x.ndim > 2 else None
    if kernels is not None:
        y, rstd = kernels.normalise(x.reshape(three), weight, bias, mean, var, eps)
        return y.reshape(x.shape), (rstd,)
    rstd = 1 / backend.namespace(x).sqrt(wide(var) + eps)
    scale = rstd if weight is None else rstd * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    y = wide(x).reshape(three) * scale[:, None]
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
    kernels = load_for("batch_norm", x, g, mean, rstd, weight) if x.ndim > 2 else None
    if kernels is not None:
        given = (g.reshape(shape), x.reshape(shape), mean, rstd, weight)
        dx, dw, db = kernels.batch_norm_backward(*given, training)
        return [
            dx.reshape(x.shape),
            dw if needs[1] else None,
            db if needs[2] else None,
            None,
            None,
        ]
    scale = rstd if weight is None else rstd * weight
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


def _planes(a: Any, n: int, groups: int) -> Any:
    """x_NC… as x_NGPL, and what belongs to channels as a_1GP1."""
    if a.ndim == 1:
        return a.reshape(1, groups, -1, 1)
    return a.reshape(n, groups, a.shape[1] // groups, math.prod(a.shape[2:]))


_LEAST_PLANE = 8  # numbers of a plane from which its loop pays


def _group_kernels(length: int, *arrays: Any) -> Any:
    return load_for("group_norm", *arrays, kinds="f") if length >= _LEAST_PLANE else None


def _group_forward(
    x: Any, weight: Any, bias: Any, *, groups: int, eps: float
) -> tuple[Any, tuple[Any, ...]]:
    n, c, length = _three(x)
    kernels = _group_kernels(length, x, weight, bias)
    if kernels is not None:
        y, mean, rstd = kernels.group_norm(x.reshape(n, c, length), weight, bias, groups, eps)
        return y.reshape(x.shape), (mean, rstd)
    rows = wide(x).reshape(n * groups, -1)
    mean = rows.mean(1)
    y = rows - mean[:, None]
    rstd = 1 / backend.namespace(x).sqrt((y * y).mean(1) + eps)
    y *= rstd[:, None]
    y = y.reshape(n, groups, c // groups, length)
    if weight is not None:
        y = y * _planes(wide(weight), n, groups)
    if bias is not None:
        y = y + _planes(wide(bias), n, groups)
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
    (n, c, length), (mean, rstd) = _three(x), residuals
    kernels = _group_kernels(length, x, g, weight)
    if kernels is not None:
        rows = (a.reshape(n, c, length) for a in (g, x))
        dx, dw, db = kernels.group_norm_backward(*rows, weight, groups, mean, rstd)
    else:
        g, x3 = _planes(wide(g), n, groups), _planes(wide(x), n, groups)
        mean, rstd = (a.reshape(n, groups, 1, 1).astype(rstd.dtype) for a in (mean, rstd))
        normal = (x3 - mean) * rstd
        dw, db = ((g * normal).sum((0, 3)).reshape(c), g.sum((0, 3)).reshape(c))
        gw = g if weight is None else g * _planes(wide(weight), n, groups)
        dx = gw - gw.mean((2, 3), keepdims=True)
        dx -= normal * (gw * normal).mean((2, 3), keepdims=True)
        dx *= rstd
    grads = (dx, dw, db)
    return [_like(d, a, need) for d, a, need in zip(grads, (x, weight, bias), needs, strict=True)]


group_norm_op = Fused(
    _group_definition,
    _group_forward,
    _group_backward,
    supports=lambda x, weight, bias, *, groups, eps: x.size > 0,
)
group_norm_op.name = "group_norm"
