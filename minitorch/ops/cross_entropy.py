"""Cross-entropy of logits and class indices, in one node.

`loss_i = -(1-s)·w[t_i]·log p_i[t_i] - s/C · Σ_c w[c]·log p_i[c]` with `p_i = softmax(x_i)`, class
weights w and label smoothing s; "mean" divides the sum by Σ w[t_i] over targets not ignored.

The backward pass uses `∂loss_i/∂x_ij = a_i·p_ij - a_ij`, a_ij being the factor of -log p_ij.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import backend
from ..kernels import load_for
from .fused import Fused
from .wide import wide


def _reduced(loss: Any, weights: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / weights.sum()


def _definition(
    x: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int | None,
    reduction: str,
    label_smoothing: float,
) -> Any:
    logp = x.log_softmax(1)
    kept = target == target if ignore_index is None else target != ignore_index
    safe = target.where(kept, target * 0)
    w = kept.to(logp.dtype) if weight is None else weight[safe] * kept
    loss = -logp.gather(1, safe.unsqueeze(1)).squeeze(1) * w
    if label_smoothing:
        spread = logp if weight is None else logp * weight.reshape(-1, *[1] * (x.ndim - 2))
        loss = loss * (1 - label_smoothing) - spread.sum(1) * kept * (label_smoothing / x.shape[1])
    return _reduced(loss, w, reduction)


def _rows(x: Any) -> Any:
    """x_NC… as rows of C, float32 or wider."""
    if x.ndim > 2:
        x = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)
    return wide(x.reshape(-1, x.shape[-1]))


def _unrows(dx: Any, x: Any) -> Any:
    """Rows of C as x_NC…, in the dtype of x."""
    if dx.shape == x.shape and dx.dtype == x.dtype:
        return dx
    if x.ndim > 2:
        dx = dx.reshape(x.shape[0], -1, dx.shape[1]).swapaxes(1, 2)
    return dx.reshape(x.shape).astype(x.dtype, copy=False)


def _plain(weight: Any, ignore_index: int | None, reduction: str, label_smoothing: float) -> bool:
    """True where every row counts the same and the loss is one number."""
    return weight is None and ignore_index is None and not label_smoothing and reduction != "none"


def _plain_forward(
    xp: Any, rows: Any, target: Any, reduction: str, dtype: Any
) -> tuple[Any, tuple[Any, ...]]:
    """Few calls for few rows; the residuals are the probabilities and where the targets lie."""
    shifted = rows - rows.max(1, keepdims=True)
    p = xp.exp(shifted)
    total = p.sum(1, keepdims=True)
    places = xp.arange(0, rows.size, rows.shape[1]) + target
    loss = xp.log(total[:, 0])
    loss -= shifted.reshape(-1)[places]
    p /= total
    out = loss.sum()
    if reduction == "mean":
        out = out / max(1, len(rows))
    return xp.asarray(out, dtype), (p, places)


def _plain_backward(g: Any, p: Any, places: Any, reduction: str) -> Any:
    scale = wide(g) / len(p) if reduction == "mean" else wide(g)
    dx = p * scale
    dx.reshape(-1)[places] -= scale
    return dx


def _counted(
    xp: Any, target: Any, weight: Any, ignore_index: int | None, dtype: Any
) -> tuple[Any, Any, Any]:
    """Which targets count, targets to look up, and the factors of their losses."""
    if ignore_index is None:
        kept, safe = xp.ones(target.shape, bool), target
    else:
        kept = target != ignore_index
        safe = xp.where(kept, target, 0)
    w = kept.astype(dtype) if weight is None else wide(weight)[safe] * kept
    return kept, safe, w


def _forward(
    x: Any,
    target: Any,
    weight: Any,
    *,
    ignore_index: int | None,
    reduction: str,
    label_smoothing: float,
) -> tuple[Any, tuple[Any, ...]]:
    xp = backend.namespace(x)
    rows = _rows(x)
    t = target.reshape(-1)
    kernels = load_for("loss", rows, kinds="f")
    if kernels is None and _plain(weight, ignore_index, reduction, label_smoothing):
        return _plain_forward(xp, rows, t, reduction, x.dtype)
    kept, safe, w = _counted(xp, t, weight, ignore_index, rows.dtype)
    if kernels is not None:
        sums, loss = kernels.cross_entropy(rows, safe, w)
    else:
        top = rows.max(1, keepdims=True)
        sums = xp.concatenate((top, xp.exp(rows - top).sum(1, keepdims=True)), 1)
        picked = top - xp.take_along_axis(rows, safe[:, None], 1) + xp.log(sums[:, 1:])
        # An ignored row may hold inf or NaN; it must not reach the sum.
        loss = xp.where(kept, picked[:, 0], 0) * w
    if label_smoothing:
        spread = sums[:, :1] - rows + xp.log(sums[:, 1:])
        spread = spread if weight is None else spread * wide(weight)
        spread = xp.where(kept, spread.sum(1), 0)
        loss = loss * (1 - label_smoothing) + spread * (label_smoothing / rows.shape[1])
    out = _reduced(loss.reshape(target.shape), w, reduction)
    return xp.asarray(out).astype(x.dtype, copy=False), (sums, safe, kept, w)


def _backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    target: Any,
    weight: Any,
    *,
    ignore_index: int | None,
    reduction: str,
    label_smoothing: float,
) -> list[Any]:
    if len(residuals) == 2:
        dx = _plain_backward(g, *residuals, reduction)
        return [_unrows(dx, x), None, None]
    sums, safe, kept, w = residuals
    xp, rows = backend.namespace(x), _rows(x)
    scale = wide(g).reshape(-1)
    if reduction == "mean":
        scale = scale / w.sum()
    classes, smooth = rows.shape[1], label_smoothing
    factor = scale * w * (1 - smooth)
    kernels = load_for("loss", rows, kinds="f") if not smooth else None
    if kernels is not None:
        dx = kernels.cross_entropy_backward(rows, sums, safe, factor)
    else:
        spread = scale * kept * (smooth / classes)
        total = factor + spread * (classes if weight is None else wide(weight).sum())
        dx = xp.exp(rows - sums[:, :1]) * (total / sums[:, 1])[:, None]
        if smooth:
            dx -= spread[:, None] if weight is None else spread[:, None] * wide(weight)
        lines = xp.arange(len(rows))
        dx[lines, safe] -= factor
        dx = xp.where(kept[:, None], dx, 0)
    return [_unrows(dx, x), None, None]


cross_entropy_op = Fused(_definition, _forward, _backward)
cross_entropy_op.name = "cross_entropy"
"""`cross_entropy(x_NC…, target_N…, weight_C, *, ignore_index, reduction, label_smoothing)`.

ignore_index is None where every target counts."""


def divisor(node: Any, residuals: Sequence[Any]) -> Any:
    """What the mean of a cross-entropy divides by.

    Args:
        node: Its node in the graph.
        residuals: Those of its forward pass, or what stands for them.

    Returns:
        Their number where all targets count 1, else what stands for the weights to be summed;
        None for another reduction.
    """
    if node.params.get("reduction") != "mean":
        return None
    return residuals[3] if len(residuals) == 4 else float(node.saved[1].size)


__all__ = ["cross_entropy_op", "divisor"]
