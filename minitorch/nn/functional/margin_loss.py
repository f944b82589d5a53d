"""Losses of margins: between classes, between labels 1 and -1, and between ranks."""

from __future__ import annotations

import math
from typing import Any

from ... import backend
from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import activation, elementwise
from ...ops.distance import reduced
from ...ops.primitive import wrap
from ...tensor import Tensor
from . import targets
from .checks import need_tensor
from .loss_checks import full_width, reduction_of, same_shape


def _hinge(x: Tensor) -> Tensor:
    return elementwise.clamp_min(x, 0)


def _labels_fit(name: str, input: Tensor, target: Tensor) -> Tensor:
    """`target` as f, which must not make the loss larger than the input."""
    need_tensor(name, "the input", input)
    need_tensor(name, "the target", target)
    a, b = tuple(target.shape), tuple(input.shape)
    if len(a) > len(b) or any(n not in (1, m) for n, m in zip(a[::-1], b[::-1], strict=False)):
        same_shape(name, input, target)
    return target


@full_width
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`log(1 + exp(-target·input))` for targets 1 and -1; finite for every input.

    Args:
        input: f[…].
        target: 1 or -1, of the same shape.
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The shapes differ.
    """
    name = "soft_margin_loss"
    reduction = reduction_of(name, size_average, reduce, reduction)
    same_shape(name, input, target)
    loss = activation.softplus(-(target.to(input.dtype) * input), beta=1.0, threshold=math.inf)
    return reduced(loss, reduction)


@full_width
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The input where the target is 1, `max(0, margin - input)` where it is -1.

    Args:
        input: f[…], distances.
        target: 1 or -1, of the same shape or broadcast to it.
        margin: Distance from which unlike pairs cost nothing.
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The target would broadcast the loss.
    """
    name = "hinge_embedding_loss"
    reduction = reduction_of(name, size_average, reduce, reduction)
    target = _labels_fit(name, input, target)
    unlike = elementwise.where(target != 1, _hinge(margin - input), 0.0)
    return reduced(unlike + elementwise.where(target != -1, input, 0.0), reduction)


@full_width
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, -target·(input1 - input2) + margin)`: target 1 ranks the first input higher.

    Args:
        input1: f[…].
        input2: Of the same shape.
        target: 1 or -1, with as many axes, of the same shape or broadcast to it.
        margin: Difference that is wanted.
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The inputs differ, or the target would broadcast the loss.
    """
    name = "margin_ranking_loss"
    reduction = reduction_of(name, size_average, reduce, reduction)
    same_shape(name, input1, input2)
    target = _labels_fit(name, input1, target)
    if target.ndim != input1.ndim:
        same_shape(name, input1, target)
    return reduced(_hinge(-target * (input1 - input2) + margin), reduction)


@full_width
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1.

    Args:
        input1: f[N, D] or f[D].
        input2: Of the same shape.
        target: 1 or -1, [N] or [].
        margin: Cosine from which unlike pairs cost.
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The shapes do not belong together.
    """
    name = "cosine_embedding_loss"
    reduction = reduction_of(name, size_average, reduce, reduction)
    same_shape(name, input1, input2)
    need_tensor(name, "the target", target)
    if input1.ndim not in (1, 2) or tuple(target.shape) != tuple(input1.shape[:-1]):
        raise ShapeError(
            f"{name}: inputs must be [N, D] with a target [N], or [D] with a target []. "
            f"Got {describe(input1)} and {describe(target)}."
        )
    tiny = 1e-12
    squares = [(x * x).sum(-1) + tiny for x in (input1, input2)]
    cosine = (input1 * input2).sum(-1) / (squares[0] * squares[1]).sqrt()
    like = elementwise.where(target == 1, 1 - cosine, 0.0)
    return reduced(like + elementwise.where(target == -1, _hinge(cosine - margin), 0.0), reduction)


def _rows(name: str, input: Tensor, target: Tensor, wanted: Any) -> tuple[Tensor, Tensor]:
    """Both with an axis of samples; the target must have the shape `wanted(input)`."""
    need_tensor(name, "the input", input)
    need_tensor(name, "the target", target)
    if input.ndim not in (1, 2) or not input.dtype.is_floating_point:
        raise ShapeError(f"{name}: the input must be f[N, C] or f[C]. Got {describe(input)}.")
    if input.ndim == 1 and target.ndim == 1 and not wanted(input) and target.shape[0] == 1:
        target = target[0]
    if tuple(target.shape) != wanted(input):
        raise ShapeError(
            f"{name}: the target of {describe(input)} must have the shape {wanted(input)}. "
            f"Got {describe(target)}."
        )
    if target.dtype.is_floating_point:
        raise DtypeError(
            f"{name}: the target must hold class numbers. Got {describe(target)}. Use .long()."
        )
    return (input, target) if input.ndim == 2 else (input.unsqueeze(0), target.unsqueeze(0))


@full_width
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`Σ_{j≠t} max(0, w[t]·(margin - x[t] + x[j]))^p / C`, with the weight outside of the power.

    Args:
        input: f[N, C] or f[C], scores.
        target: Class numbers, integers [N] or [].
        p: 1 or 2.
        margin: How far the target should be ahead.
        weight: f[C], a factor for each class.
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        ArgumentError: p is neither 1 nor 2, or a class is out of range.
        ShapeError: The shapes do not belong together.
    """
    name = "multi_margin_loss"
    reduction = reduction_of(name, size_average, reduce, reduction)
    if p not in (1, 2):
        raise ArgumentError(f"{name}: p must be 1 or 2. Got {p}.")
    single = input.ndim == 1
    x, t = _rows(name, input, target, lambda a: tuple(a.shape[:-1]))
    weight = targets.class_weight(name, x, weight)
    targets.check_range(name, t, 0, x.shape[1] - 1)
    z = _hinge(margin - x.gather(1, t.unsqueeze(1)) + x)
    z = z if p == 1 else z * z
    others = wrap(t._array[:, None] != backend.namespace(t._array).arange(x.shape[1]))
    loss = (z * others).sum(1) / x.shape[1]
    loss = loss if weight is None else loss * weight[t]
    return reduced(loss.squeeze(0) if single else loss, reduction)


@full_width
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`Σ_{t, j} max(0, 1 - (x[t] - x[j])) / C` over targets t and classes j that are none.

    Args:
        input: f[N, C] or f[C], scores.
        target: Class numbers of the same shape; those from the first -1 on do not count.
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The shapes differ.
        ArgumentError: A class is out of range.
    """
    name = "multilabel_margin_loss"
    reduction = reduction_of(name, size_average, reduce, reduction)
    single = input.ndim == 1
    x, t = _rows(name, input, target, lambda a: tuple(a.shape))
    classes = x.shape[1]
    targets.check_range(name, t, -1, classes - 1)
    labels = t._array
    xp = backend.namespace(labels)
    counts = xp.cumsum(labels < 0, axis=1) == 0
    hits = (labels[:, :, None] == xp.arange(classes)) & counts[:, :, None]
    pairs = counts[:, :, None] & ~hits.any(axis=1)[:, None, :]
    picked = x.gather(1, wrap(xp.where(counts, labels, 0)))
    z = _hinge(1 - picked.unsqueeze(2) + x.unsqueeze(1))
    loss = (z * wrap(pairs)).sum((1, 2)) / classes
    return reduced(loss.squeeze(0) if single else loss, reduction)


@full_width
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes of `-(t·log σ(x) + (1-t)·log σ(-x))`.

    Args:
        input: f[…, C], logits.
        target: 0 or 1, of the same shape.
        weight: Factors that can be broadcast to it.
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none"; "none" gives f[…].

    Raises:
        ShapeError: The shapes differ, or the input is 0-d.
    """
    name = "multilabel_soft_margin_loss"
    reduction = reduction_of(name, size_average, reduce, reduction)
    same_shape(name, input, target)
    if not input.ndim:
        raise ShapeError(f"{name}: the input must be f[…, C]. Got {describe(input)}.")
    yes, no = activation.logsigmoid(input), activation.logsigmoid(-input)
    loss = -(target * yes + (1 - target) * no)
    loss = loss if weight is None else loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], reduction)
