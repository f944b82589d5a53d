"""Scaled dot-product attention, `softmax(q kᵀ · scale + bias) v`, in one node.

A row that may attend nowhere gives 0. The backward pass uses `∂L/∂scores = w · (dw - Σ dw·w)` for
each row, with the weights w kept, or computed again where there are compiled bodies.

Source: Vaswani et al., Attention Is All You Need, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..kernels import load_for
from . import comparison, linalg, product, reduction, shape
from . import elementwise as el
from .dropout import dropout_op
from .fused import Fused
from .primitive import raw, wrap
from .wide import wide


def _causal(xp: Any, rows: int, columns: int) -> Any:
    """bool[rows, columns]: row i may attend to columns up to i."""
    return xp.arange(columns) <= xp.arange(rows)[:, None]


def attention_weights(q: Any, k: Any, mask: Any, *, scale: float, causal: bool) -> Any:
    """`softmax(q kᵀ · scale + bias)` of Tensors; rows with nothing to attend to are 0."""
    scores = linalg.matmul(q, shape.transpose(k, -1, -2)) * scale
    if not scores.shape[-1]:
        return scores
    if causal:
        allowed = _causal(backend.namespace(raw(q)), q.shape[-2], k.shape[-2])
        scores = el.where(wrap(allowed), scores, -math.inf)
    if mask is not None:
        hard = raw(mask).dtype == np.bool_
        scores = el.where(mask, scores, -math.inf) if hard else scores + mask
    top = reduction.amax(scores.detach(), -1, True)
    e = el.exp(scores - el.where(comparison.isfinite(top), top, 0.0))
    total = reduction.sum(e, -1, True)
    return e / el.where(total.detach() == 0, 1.0, total)


def _attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    *,
    scale: float,
    causal: bool,
    keep: Any = None,
    keep_scale: float = 1.0,
) -> Any:
    w = attention_weights(q, k, mask, scale=scale, causal=causal)
    return linalg.matmul(w if keep is None else dropout_op(w, keep=keep, scale=keep_scale), v)


def _bias(xp: Any, mask: Any, causal: bool, rows: int, columns: int, dtype: Any) -> Any:
    """What is added to the scores, as small as the masks allow, or None."""
    zero, never = dtype.type(0), dtype.type(-math.inf)
    bias = None
    if mask is not None:
        bias = xp.where(mask, zero, never) if mask.dtype.kind == "b" else wide(mask)
    if causal:
        triangle = xp.where(_causal(xp, rows, columns), zero, never)
        bias = triangle if bias is None else bias + triangle
    return bias


def _softmax(xp: Any, scores: Any, bias: Any) -> Any:
    """The softmax of `scores + bias` in the memory of the scores or in new memory."""
    if bias is not None:
        scores += bias
    kernels = load_for("softmax", scores, contiguous=True)
    if kernels is not None and (bias is None or bool((bias.max(axis=-1) > -math.inf).all())):
        return kernels.softmax(scores)
    top = scores.max(axis=-1, keepdims=True)
    scores -= xp.where(xp.isfinite(top), top, 0)
    xp.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    scores /= xp.where(total == 0, 1, total)
    return scores


def _kept(w: Any, keep: Any, keep_scale: float) -> Any:
    return w if keep is None else dropout_op(w, keep=keep, scale=keep_scale)


def _compiled(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """The compiled bodies, if they can take these arrays of float32 or wider."""
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        return None
    if mask is not None and mask.ndim > max(2, q.ndim):
        return None
    return load_for("attention", q, k, v, kinds="f", least=1)


def _hidden(mask: Any, causal: bool, q: Any, keys: int) -> tuple[Any, bool]:
    """What is added, f32[B or 1, H or 1, L or 1, S or 1], and if it is causal besides."""
    bias = _bias(np, mask, causal, q.shape[-2], keys, np.dtype(np.float32))
    return _four(bias, q, keys), False


def _four(x: Any, q: Any, keys: int) -> Any:
    """What there is for rows and keys, as f32[B or 1, H or 1, L or 1, S or 1]."""
    if q.ndim > 4:  # whose leading axes are one
        x = np.broadcast_to(x, (*q.shape[:-1], keys))
        x = x.reshape(-1, *x.shape[-3:])
    return x.reshape((1,) * (4 - x.ndim) + x.shape).astype(np.float32, copy=False)


def _drop(keep: Any, keep_scale: float, q: Any, keys: int) -> Any:
    """What weights are multiplied by, or None."""
    return None if keep is None else _four(keep * np.float32(keep_scale), q, keys)


def _forward(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    *,
    scale: float,
    causal: bool,
    keep: Any = None,
    keep_scale: float = 1.0,
) -> tuple[Any, tuple[Any, ...]]:
    dtype = q.dtype
    if dtype in dtypes.HALF:
        q, k, v = wide(q), wide(k), wide(v)
    kernels = _compiled(q, k, v, mask)
    if kernels is not None:
        bias = None
        if mask is not None:
            bias, causal = _hidden(mask, causal, q, k.shape[-2])
        drop = _drop(keep, keep_scale, q, k.shape[-2])
        out, rows = kernels.forward(q, k, v, bias, drop, scale, causal)
        return (out if out.dtype is dtype else out.astype(dtype)), (None, rows)
    w = _weights(q, k, mask, scale, causal)
    return product.matmul(_kept(w, keep, keep_scale), v).astype(dtype, copy=False), (w, None)


def _weights(q: Any, k: Any, mask: Any, scale: float, causal: bool) -> Any:
    xp = backend.namespace(q)
    scores = product.matmul(q * q.dtype.type(scale), k.swapaxes(-1, -2))
    bias = _bias(xp, mask, causal, q.shape[-2], k.shape[-2], q.dtype)
    return _softmax(xp, scores, bias)


def _fit(g: Any, like: Any) -> Any:
    """`g` summed over the axes along which `like` was broadcast, in its dtype."""
    extra = g.ndim - like.ndim
    g = g.sum(axis=tuple(range(extra))) if extra else g
    axes = tuple(i for i, n in enumerate(like.shape) if n == 1 and g.shape[i] != 1)
    g = g.sum(axis=axes, keepdims=True) if axes else g
    return g.astype(like.dtype, copy=False)


def _backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    *,
    scale: float,
    causal: bool,
    keep: Any = None,
    keep_scale: float = 1.0,
) -> list[Any]:
    w, rows = residuals
    dtype = q.dtype
    half = dtype in dtypes.HALF
    if w is None and not needs[3]:
        arrays = [wide(a) for a in (g, q, k, v)] if half else [g, q, k, v]
        kernels = load_for("attention", *arrays, kinds="f", least=1)
        if kernels is not None:
            bias = None
            if mask is not None:
                bias, causal = _hidden(mask, causal, q, k.shape[-2])
            drop = _drop(keep, keep_scale, q, k.shape[-2])
            dq, dk, dv = kernels.backward(*arrays, bias, drop, rows, scale, causal)
            if half:
                dq, dk, dv = dq.astype(dtype), dk.astype(dtype), dv.astype(dtype)
            return [dq, dk, dv, None]
    grads: list[Any] = [None] * 4
    g = wide(g)
    if w is None:
        w = _weights(wide(q), wide(k), mask, scale, causal)
    if needs[2]:
        grads[2] = _fit(product.matmul(_kept(w, keep, keep_scale).swapaxes(-1, -2), g), v)
    if not (needs[0] or needs[1] or needs[3]):
        return grads
    d = product.matmul(g, wide(v).swapaxes(-1, -2))
    d = _kept(d, keep, keep_scale)
    d -= (d * w).sum(axis=-1, keepdims=True)
    d *= w
    if needs[3]:
        grads[3] = _fit(d, mask)
        grads[3] = grads[3].copy() if grads[3] is d else grads[3]
    d *= d.dtype.type(scale)
    if needs[0]:
        grads[0] = _fit(product.matmul(d, wide(k)), q)
    if needs[1]:
        grads[1] = _fit(product.matmul(d.swapaxes(-1, -2), wide(q)), k)
    return grads


def _supports(q: Any, k: Any, v: Any, mask: Any = None, **options: Any) -> bool:
    return bool(k.shape[-2]) and q.size > 0


attention_op = Fused(_attention, _forward, _backward, supports=_supports)
"""`attention(q_LE, k_SE, v_SD, mask_LS, *, scale, causal, keep, keep_scale)`, with leading axes.

A bool mask is true where a row may attend, any other is added; `keep` is dropout's mask."""
attention_op.name = "scaled_dot_product_attention"

__all__ = ["attention_op", "attention_weights"]
