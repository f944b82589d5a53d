"""Losses of the difference `d = input - target`, each one node.

A family: an op states its value and its slope as functions of d, on arrays, and its definition on
Tensors; reduction, half types and the gradient of the target follow from that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import backend
from . import elementwise as el
from .fused import Fused
from .primitive import Primitive
from .wide import wide


def reduced(loss: Any, reduction: str) -> Any:
    """`loss`, its sum, or its mean; for Tensors and arrays."""
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def _distance(
    name: str, definition: Callable[..., Any], value: Callable[..., Any], slope: Callable[..., Any]
) -> Fused:
    def forward(x: Any, target: Any, *, reduction: str, **options: float) -> Any:
        loss = reduced(value(wide(x) - wide(target), **options), reduction)
        return backend.namespace(x).asarray(loss).astype(x.dtype, copy=False), ()

    def backward(
        g: Any,
        needs: Sequence[bool],
        residuals: tuple[Any, ...],
        x: Any,
        target: Any,
        *,
        reduction: str,
        **options: float,
    ) -> list[Any]:
        g = wide(g)
        if reduction == "mean":
            g = g / max(1, x.size)
        d = slope(wide(x) - wide(target), **options) * g
        return [
            d.astype(x.dtype, copy=False) if needs[0] else None,
            (-d).astype(target.dtype, copy=False) if needs[1] else None,
        ]

    def composite(x: Any, target: Any, *, reduction: str, **options: float) -> Any:
        return reduced(definition(x - target, **options), reduction)

    op = Fused(composite, forward, backward)
    op.name = name
    return op


def _huber_value(d: Any, *, delta: float) -> Any:
    xp, size = backend.namespace(d), abs(d)
    return xp.where(size < delta, d * d * 0.5, delta * (size - 0.5 * delta))


def _smooth_value(d: Any, *, beta: float) -> Any:
    return _huber_value(d, delta=beta) / beta


def _huber(d: Any, *, delta: float) -> Any:
    size = abs(d)
    return el.where(size < delta, d * d * 0.5, (size - 0.5 * delta) * delta)


def _clipped(d: Any, limit: float) -> Any:
    return backend.namespace(d).clip(d, -limit, limit)


mse_op = _distance("mse_loss", lambda d: d * d, lambda d: d * d, lambda d: d + d)
l1_op = _distance("l1_loss", abs, abs, lambda d: backend.namespace(d).sign(d))
huber_op = _distance("huber_loss", _huber, _huber_value, lambda d, *, delta: _clipped(d, delta))
smooth_l1_op = _distance(
    "smooth_l1_loss",
    lambda d, *, beta: _huber(d, delta=beta) / beta,
    _smooth_value,
    lambda d, *, beta: _clipped(d, beta) / beta,
)


def _bce_definition(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str
) -> Any:
    # log(1 + exp(-x)) = max(-x, 0) + log(1 + exp(-|x|)), finite for every x.
    softplus = el.clamp_min(-x, 0) + el.log1p(el.exp(-abs(x)))
    scale = 1 if pos_weight is None else target * (pos_weight - 1) + 1
    loss = (1 - target) * x + scale * softplus
    return reduced(loss if weight is None else loss * weight, reduction)


def _bce_forward(
    x: Any, target: Any, weight: Any, pos_weight: Any, *, reduction: str
) -> tuple[Any, tuple[Any, ...]]:
    xp, dtype = backend.namespace(x), x.dtype
    x, target = wide(x), wide(target)
    loss = xp.log1p(xp.exp(-abs(x))) + xp.maximum(-x, 0)
    if pos_weight is not None:
        loss *= target * (wide(pos_weight) - 1) + 1
    loss += (1 - target) * x
    if weight is not None:
        loss = loss * wide(weight)
    return xp.asarray(reduced(loss, reduction)).astype(dtype, copy=False), ()


def _bce_backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    target: Any,
    weight: Any,
    pos_weight: Any,
    *,
    reduction: str,
) -> list[Any]:
    kinds, size, g = (x.dtype, target.dtype), max(1, x.size), wide(g)
    x, target = wide(x), wide(target)
    g = g / size if reduction == "mean" else g
    g = g if weight is None else g * wide(weight)
    xp, scale = backend.namespace(x), 1
    e = xp.exp(-abs(x))
    sigmoid_of_minus = xp.where(x >= 0, e, 1) / (1 + e)
    if pos_weight is not None:
        scale = target * (wide(pos_weight) - 1) + 1
    dx = dt = None
    if needs[0]:
        dx = ((1 - target - scale * sigmoid_of_minus) * g).astype(kinds[0], copy=False)
    if needs[1]:
        slope = 0 if pos_weight is None else wide(pos_weight) - 1
        dt = (((xp.log1p(e) + xp.maximum(-x, 0)) * slope - x) * g).astype(kinds[1], copy=False)
    return [dx, dt, None, None]


bce_with_logits_op = Fused(_bce_definition, _bce_forward, _bce_backward)
bce_with_logits_op.name = "binary_cross_entropy_with_logits"
"""`bce_with_logits(x, target, weight, pos_weight, *, reduction)`; no gradient for the weights."""


def _log_odds(x: Any) -> tuple[Any, Any]:
    """log x and log(1-x) of an array, not below -100."""
    xp = backend.namespace(x)
    with np.errstate(divide="ignore"):
        return xp.maximum(xp.log(x), -100), xp.maximum(xp.log1p(-x), -100)


def _bce_array(x: Any, target: Any) -> Any:
    dtype, x, target = x.dtype, wide(x), wide(target)
    yes, no = _log_odds(x)
    return ((target - 1) * no - target * yes).astype(dtype, copy=False)


def _bce_slope(g: Any, x: Any, target: Any) -> Any:
    # A probability that is exactly right has the slope 0, not 0/0.
    return g * (x - target) / el.clamp_min(x * (1 - x), 1e-12)


def _bce_target_slope(g: Any, x: Any, target: Any) -> Any:
    return g * (_log(1 - x) - _log(x))


def _log(x: Any) -> Any:
    """log x, not below -100, with the slope 0 there."""
    return el.where(x > 0, el.clamp_min(el.log(el.where(x > 0, x, el.ones_like(x))), -100), -100.0)


bce_op = Primitive("binary_cross_entropy", _bce_array, (_bce_slope, _bce_target_slope), (0, 1))
"""`bce(x, target)`: `-(t·log x + (1-t)·log(1-x))` per element, logarithms not below -100."""
