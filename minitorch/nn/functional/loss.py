"""Losses under PyTorch's names. They never broadcast: shapes must be equal."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, ShapeError, describe
from ...ops import distance, elementwise
from ...ops.creation import full_like
from ...ops.cross_entropy import cross_entropy_op
from ...ops.distance import reduced
from ...tensor import Tensor
from . import targets
from .checks import check_reduction, need_floating, need_tensor
from .loss_checks import check_factor, full_width, reduction_of, same_shape


def _distance(
    name: str, op: Any, input: Tensor, target: Tensor, reduction: str, weight: Any, **options: float
) -> Tensor:
    same_shape(name, input, target)
    check_reduction(name, reduction)
    need_floating(name, input)
    if target.dtype is not input.dtype:
        target = target.to(input.dtype)
    if weight is None:
        return op(input, target, reduction=reduction, **options)
    if weight.shape != input.shape:
        raise ShapeError(
            f"{name}: weight must have the shape of the input. Got {describe(weight)} and "
            f"{describe(input)}."
        )
    loss = op(input, target, reduction="none", **options) * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)


@full_width
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """`(input - target)²`.

    Args:
        input: f[…].
        target: Of the same shape; another dtype is converted to the input's.
        size_average, reduce: PyTorch's old names: False and True, "sum"; False, "none".
        reduction: "mean", "sum" or "none".
        weight: Factors of the same shape; "mean" then divides by their sum.

    Raises:
        ShapeError: The shapes differ (PyTorch broadcasts them with a warning).
    """
    reduction = reduction_of("mse_loss", size_average, reduce, reduction)
    return _distance("mse_loss", distance.mse_op, input, target, reduction, weight)


@full_width
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """`|input - target|`; arguments as in `mse_loss`."""
    reduction = reduction_of("l1_loss", size_average, reduce, reduction)
    return _distance("l1_loss", distance.l1_op, input, target, reduction, weight)


@full_width
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """`d²/(2·beta)` for |d| < beta, else `|d| - beta/2`; arguments as in `mse_loss`.

    Raises:
        ArgumentError: beta is negative.
    """
    reduction = reduction_of("smooth_l1_loss", size_average, reduce, reduction)
    if beta < 0:
        raise ArgumentError(f"smooth_l1_loss: beta must not be negative. Got {beta}.")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    op = distance.smooth_l1_op
    return _distance("smooth_l1_loss", op, input, target, reduction, None, beta=beta)


@full_width
def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """`d²/2` for |d| < delta, else `delta·(|d| - delta/2)`; arguments as in `mse_loss`.

    Raises:
        ArgumentError: delta is not positive.
    """
    if delta <= 0:
        raise ArgumentError(f"huber_loss: delta must be positive. Got {delta}. Use l1_loss for 0.")
    op = distance.huber_op
    return _distance("huber_loss", op, input, target, reduction, weight, delta=delta)


@full_width
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`-(t·log x + (1-t)·log(1-x))` of probabilities; logs are not below -100.

    Args:
        input: Probabilities, f[…] in [0, 1].
        target: Probabilities of the same shape.
        weight: Factors that can be broadcast to it.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The shapes differ, or the weight would broadcast the loss.
        ArgumentError: A probability is outside of [0, 1] (checked on the CPU).
    """
    name = "binary_cross_entropy"
    reduction = reduction_of(name, size_average, reduce, reduction)
    same_shape(name, input, target)
    targets.check_unit_interval(
        name, "the input", input, "Apply sigmoid, or use the loss with logits."
    )
    check_factor(name, "weight", weight, input)
    loss = distance.bce_op(input, target.to(input.dtype))
    return reduced(loss if weight is None else loss * weight, reduction)


@full_width
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`-(pos_weight·t·log σ(x) + (1-t)·log(1-σ(x)))` of logits.

    Args:
        input: Logits, f[…].
        target: Probabilities of the same shape, 0 or 1 for hard labels.
        weight: Factors that can be broadcast to it.
        reduction: "mean", "sum" or "none".
        pos_weight: Factors of the positive part, that can be broadcast to it.

    Raises:
        ShapeError: The shapes differ, or a weight would broadcast the loss.
        ArgumentError: The input comes from sigmoid or softmax.
    """
    name = "binary_cross_entropy_with_logits"
    reduction = reduction_of(name, size_average, reduce, reduction)
    same_shape(name, input, target)
    targets.check_kind(name, input)
    need_floating(name, input)
    check_factor(name, "weight", weight, input)
    check_factor(name, "pos_weight", pos_weight, input)
    target = target.to(input.dtype)
    weights = [None if w is None else w.detach().to(input.dtype) for w in (weight, pos_weight)]
    return distance.bce_with_logits_op(input, target, *weights, reduction=reduction)


@full_width
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """`t·(log t - input)`, input being log-probabilities.

    Args:
        input: Log-probabilities, f[…].
        target: Probabilities of the same shape, or their logarithms if `log_target`.
        reduction: "mean", "sum", "none" or "batchmean" (the sum over the length of axis 0).
        log_target: Whether the target is logarithms.

    Raises:
        ShapeError: The shapes differ.
    """
    same_shape("kl_div", input, target)
    targets.check_kind("kl_div", input)
    reduction = reduction_of("kl_div", size_average, reduce, reduction, "batchmean")
    if log_target:
        loss = elementwise.exp(target) * (target - input)
    else:
        positive = target > 0
        safe = elementwise.where(positive, target, 1.0)
        # 0·log 0 is 0, and its gradient does not pass through log 0.
        loss = target * elementwise.log(safe) - target * input
    if reduction == "batchmean":
        return loss.sum() / input.shape[0] if input.ndim else loss.sum()
    return reduced(loss, reduction)


@full_width
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`-log softmax(input)[target]`.

    Args:
        input: Logits, f[N, C, …] or f[C].
        target: Class numbers, integers [N, …] from 0 to C-1; or probabilities, f[N, C, …].
        weight: f[C], a factor for each class; "mean" divides by the sum of those that were used.
        ignore_index: Class number that does not count.
        reduction: "mean", "sum" or "none".
        label_smoothing: Share of the target that is spread over all classes, in [0, 1].

    Returns:
        A number, or with "none" f[N, …].

    Raises:
        ShapeError: The shapes do not belong together.
        DtypeError: Class numbers are not integers.
        ArgumentError: A class is out of range, all are ignored, or the input is probabilities.
    """
    name = "cross_entropy"
    if not (isinstance(input, Tensor) and isinstance(target, Tensor)):
        need_tensor(name, "the input", input)
        need_tensor(name, "the target", target)
    reduction = reduction_of(name, size_average, reduce, reduction)
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"{name}: label_smoothing must be from 0 to 1. Got {label_smoothing}.")
    targets.check_kind(name, input)
    weight = targets.class_weight(name, input, weight)
    if target._array.shape == input._array.shape and target.dtype.is_floating_point:
        return _soft_cross_entropy(input, target, weight, reduction, label_smoothing)
    all_count = targets.check_classes(name, input, target, ignore_index, reduction)
    single = input._array.ndim == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    loss = cross_entropy_op(
        input,
        target,
        weight,
        ignore_index=None if all_count else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    return loss.squeeze(0) if single and reduction == "none" else loss


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> Tensor:
    axis = 1 if input.ndim > 1 else 0
    classes = input.shape[axis]
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = -(input.log_softmax(axis) * target)
    if weight is not None:
        loss = loss * weight.reshape(-1, *[1] * (input.ndim - 1 - axis))
    loss = loss.sum(axis)
    if reduction == "mean":
        return loss.sum() / (input.numel() / classes)
    return reduced(loss, reduction)


@full_width
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`-input[target]` of log-probabilities; arguments as in `cross_entropy`.

    Args:
        input: Log-probabilities, f[N, C, …] or f[C], as log_softmax gives them.
        target: Class numbers, integers [N, …].
        weight: f[C], a factor for each class.
        ignore_index: Class number that does not count.
        reduction: "mean", "sum" or "none".
    """
    name = "nll_loss"
    need_tensor(name, "the input", input)
    need_tensor(name, "the target", target)
    reduction = reduction_of(name, size_average, reduce, reduction)
    targets.check_kind(name, input)
    weight = targets.class_weight(name, input, weight)
    targets.check_classes(name, input, target, ignore_index, reduction)
    axis = 1 if input.ndim > 1 else 0
    kept = target != ignore_index
    safe = elementwise.where(kept, target, 0)
    picked = input.gather(axis, safe.unsqueeze(axis)).squeeze(axis)
    factor = kept.to(input.dtype) if weight is None else weight[safe] * kept
    loss = -elementwise.where(kept, picked, 0.0) * factor
    return loss.sum() / factor.sum() if reduction == "mean" else reduced(loss, reduction)


@full_width
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """`(log var + (input - target)²/var) / 2`, with var not below eps.

    Args:
        input: Means, f[…].
        target: Of the same shape.
        var: Variances: of the same shape, with one for each row (f[…, 1], or without the last
            axis), or a number.
        full: Whether to add the constant `log(2π) / 2`.
        eps: Least variance; a constant for the gradient.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The shapes differ.
        ArgumentError: A variance is negative (checked on the CPU).
    """
    name = "gaussian_nll_loss"
    same_shape(name, input, target)
    check_reduction(name, reduction)
    v: Tensor = var if isinstance(var, Tensor) else full_like(input.detach(), var)
    rows = tuple(input.shape[:-1])
    if v.shape != input.shape and tuple(v.shape) == rows:
        v = v.unsqueeze(-1)
    elif not input.ndim or tuple(v.shape) != (*rows, 1):
        same_shape(name, input, v)
    targets.check_not_negative(name, "var", v)
    v = v + (elementwise.clamp_min(v.detach(), eps) - v.detach())
    d = input - target
    loss = 0.5 * (elementwise.log(v) + d * d / v)
    return reduced(loss + 0.9189385332046727 if full else loss, reduction)
