"""Pooling that returns (maxima, places) always, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .checks import Size
from .pool import max_pool1d, max_pool2d, max_pool3d
from .pool_choices import (
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    fractional_max_pool2d,
    fractional_max_pool3d,
)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d` with return_indices."""
    y, index = max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)
    return y, index


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d` with return_indices."""
    y, index = max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)
    return y, index


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d` with return_indices."""
    y, index = max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)
    return y, index


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d` with return_indices."""
    y, index = adaptive_max_pool1d(input, output_size, True)
    return y, index


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d` with return_indices."""
    y, index = adaptive_max_pool2d(input, output_size, True)
    return y, index


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Any, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d` with return_indices."""
    y, index = adaptive_max_pool3d(input, output_size, True)
    return y, index


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d` with return_indices."""
    options = (kernel_size, output_size, output_ratio, True, _random_samples)
    y, index = fractional_max_pool2d(input, *options)
    return y, index


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Size,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d` with return_indices."""
    options = (kernel_size, output_size, output_ratio, True, _random_samples)
    y, index = fractional_max_pool3d(input, *options)
    return y, index
