"""Distances of vectors, and the losses of triplets that are made of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import backend
from ...errors import ArgumentError, ShapeError, describe
from ...ops import elementwise
from ...ops.distance import reduced
from ...ops.primitive import wrap
from ...tensor import Tensor
from .checks import check_reduction, need_floating, need_tensor
from .loss_checks import full_width, reduction_of


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """`‖x1 - x2 + eps‖_p` along the last axis.

    Args:
        x1: f[…, D].
        x2: f[…, D], broadcast against it.
        p: Order of the norm.
        eps: Added to each difference.
        keepdim: Keep the last axis with length 1.
    """
    need_tensor("pairwise_distance", "x1", x1)
    need_tensor("pairwise_distance", "x2", x2)
    difference = x1 - x2 + eps
    return difference.norm(p, -1 if difference.ndim else None, keepdim)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The distances of all pairs of rows i < j: f[N, D] to f[N·(N-1)/2].

    Raises:
        ShapeError: The input is not a matrix.
        ArgumentError: p is negative.
    """
    need_tensor("pdist", "the input", input)
    if input.ndim != 2:
        raise ShapeError(f"pdist: the input must be a matrix of rows. Got {describe(input)}.")
    need_floating("pdist", input)
    if p < 0:
        raise ArgumentError(f"pdist: p must not be negative. Got {p}.")
    where = backend.device_of(input._array)
    rows = [wrap(backend.from_host(i, where)) for i in np.triu_indices(input.shape[0], 1)]
    if not rows[0].numel() or not input.shape[1]:
        return input.new_zeros(rows[0].numel()) + input.sum() * 0
    return (input[rows[0]] - input[rows[1]]).norm(p, -1)


@full_width
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`max(0, d(anchor, positive) - d(anchor, negative) + margin)`.

    Args:
        anchor: f[N, D] or f[D].
        positive: Of the same kind, broadcast against it.
        negative: Of the same kind, broadcast against it.
        margin: How much nearer the positive should be; above 0.
        p: Order of the norm.
        eps: Added to each difference.
        swap: Use d(positive, negative) where it is smaller than d(anchor, negative).
        size_average, reduce: PyTorch's old names for the reduction.
        reduction: "mean", "sum" or "none".

    Raises:
        ArgumentError: The margin is not positive.
        ShapeError: The numbers of axes differ.

    Source: Balntas et al., Learning shallow convolutional feature descriptors, 2016.
    """
    reduction = reduction_of("triplet_margin_loss", size_average, reduce, reduction)

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplet(
        "triplet_margin_loss", (anchor, positive, negative), distance, margin, swap, reduction
    )


@full_width
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with any function of two tensors as the distance.

    Raises:
        ArgumentError: The margin is not positive.
        ShapeError: The numbers of axes differ.
    """
    check_reduction("triplet_margin_with_distance_loss", reduction)
    return _triplet(
        "triplet_margin_with_distance_loss",
        (anchor, positive, negative),
        distance_function or pairwise_distance,
        margin,
        swap,
        reduction,
    )


def _triplet(
    name: str,
    xs: tuple[Tensor, Tensor, Tensor],
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    if margin <= 0:
        raise ArgumentError(f"{name}: margin must be above 0. Got {margin}.")
    if len({x.ndim for x in xs}) > 1:
        shown = ", ".join(describe(x) for x in xs)
        raise ShapeError(f"{name}: all three must have as many axes. Got {shown}.")
    anchor, positive, negative = xs
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = elementwise.minimum(far, distance(positive, negative))
    return reduced(elementwise.clamp_min(margin + near - far, 0), reduction)
