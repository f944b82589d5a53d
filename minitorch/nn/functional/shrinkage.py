"""Activations that load on first use: shrinkage and random leaks."""

from __future__ import annotations

import numpy as np

from ... import backend, random
from ...errors import ArgumentError
from ...ops import activation, elementwise, inplace
from ...ops.primitive import wrap
from ...tensor import Tensor
from .checks import need_floating, need_tensor


def _need_float(name: str, input: Tensor) -> None:
    need_tensor(name, "the input", input)
    need_floating(name, input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`x` where |x| > lambd, else 0."""
    _need_float("hardshrink", input)
    return elementwise.where(abs(input.detach()) <= lambd, 0.0, input)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """`x - lambd` above lambd, `x + lambd` below -lambd, else 0.

    Raises:
        ArgumentError: lambd is negative.
    """
    _need_float("softshrink", input)
    if lambd < 0:
        raise ArgumentError(f"softshrink: lambd must not be negative. Got {lambd}.")
    moved = elementwise.where(input > 0, input - lambd, input + lambd)
    return elementwise.where(abs(input.detach()) <= lambd, 0.0, moved)


def _leaky(input: Tensor, slopes: Tensor) -> Tensor:
    return elementwise.where(input > 0, input, input * slopes)


def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`x` for x > 0, else x times a slope: random in training, else the middle.

    Args:
        input: f[…].
        lower: Least slope.
        upper: Greatest slope.
        training: Whether each element draws its slope.
        inplace: Write into the memory of the input.

    Raises:
        ArgumentError: lower is above upper.

    Source: Xu et al., Empirical Evaluation of Rectified Activations, 2015.
    """
    _need_float("rrelu", input)
    if lower > upper:
        raise ArgumentError(f"rrelu: lower must not be above upper. Got {lower} and {upper}.")
    if not training:
        slope = (lower + upper) / 2
        if inplace:
            return _written(input, "rrelu_", activation.leaky_relu, slope=slope)
        return activation.leaky_relu(input, slope=slope)
    draws = random.stream("default").numpy().uniform(lower, upper, tuple(input.shape))
    array = backend.from_host(np.asarray(draws, np.float32), backend.device_of(input._array))
    slopes = wrap(array).to(input.dtype)
    return _written(input, "rrelu_", _leaky, slopes) if inplace else _leaky(input, slopes)


_written = inplace.apply_
