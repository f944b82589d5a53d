"""The negative log-likelihood of counts."""

from __future__ import annotations

import math

from ...ops import elementwise
from ...ops.distance import reduced
from ...tensor import Tensor
from .loss_checks import full_width, reduction_of, same_shape


@full_width
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`exp(x) - t·x`, x being the logarithm of the rate, or `x - t·log(x + eps)`.

    Args:
        input: f[…], logarithms of the rates, or the rates themselves.
        target: Counts of the same shape.
        log_input: Whether the input is logarithms.
        full: Whether to add Stirling's `t·log t - t + log(2πt)/2` where t > 1.
        size_average, reduce: PyTorch's old names for the reduction.
        eps: Keeps log away from 0.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: The shapes differ.
    """
    reduction = reduction_of("poisson_nll_loss", size_average, reduce, reduction)
    same_shape("poisson_nll_loss", input, target)
    if log_input:
        loss = elementwise.exp(input) - target * input
    else:
        loss = input - target * elementwise.log(input + eps)
    if full:
        t = target.to(input.dtype)
        t = elementwise.where(t > 1, t, 1.0)
        rest = t * elementwise.log(t) - t + 0.5 * elementwise.log(2 * math.pi * t)
        loss = loss + elementwise.where(target > 1, rest, 0.0)
    return reduced(loss, reduction)
