"""Activations that write into the memory of their input."""

from __future__ import annotations

from ...tensor import Tensor
from .activation import celu, elu, hardtanh, leaky_relu, relu, selu, threshold
from .shrinkage import rrelu


def relu_(input: Tensor) -> Tensor:
    """In-place form of `relu`."""
    return relu(input, True)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place form of `leaky_relu`."""
    return leaky_relu(input, negative_slope, True)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of `elu`."""
    return elu(input, alpha, True)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of `celu`."""
    return celu(input, alpha, True)


def selu_(input: Tensor) -> Tensor:
    """In-place form of `selu`."""
    return selu(input, True)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place form of `hardtanh`."""
    return hardtanh(input, min_val, max_val, True)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place form of `threshold`."""
    return _threshold(input, threshold, value, True)


def rrelu_(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Tensor:
    """In-place form of `rrelu`."""
    return rrelu(input, lower, upper, training, True)


_threshold = threshold
