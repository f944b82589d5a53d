"""Pooling layers that choose elements in windows of other kinds, put them back, or sum powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from ..tensor import Tensor
from . import functional as F
from .functional.checks import Size, pair
from .module import Module


class _AdaptiveMaxPool(Module):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima over windows that divide the last axis into `output_size` parts."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima over windows that divide the last two axes into `output_size` parts.

    Args:
        output_size: A number or (height, width); None keeps an axis.
        return_indices: Also return the flat positions of the maxima.
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima over windows that divide the last three axes into `output_size` parts."""

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _MaxUnpool(Module):
    axes: int

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0) -> None:
        super().__init__()
        name = type(self).__name__
        self.kernel_size = pair(name, "kernel_size", kernel_size, 1, self.axes)
        self.stride = (
            self.kernel_size if stride is None else pair(name, "stride", stride, 1, self.axes)
        )
        self.padding = pair(name, "padding", padding, 0, self.axes)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        function = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.axes - 1]
        y: Tensor = function(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return y

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Puts the maxima of MaxPool1d back to their places; see MaxUnpool2d."""

    axes = 1


class MaxUnpool2d(_MaxUnpool):
    """Puts the maxima of MaxPool2d back to their places; the other elements are 0.

    Args:
        kernel_size: Size of the window of the pooling.
        stride: Its step; default: its size.
        padding: Its padding.
    """

    axes = 2


class MaxUnpool3d(_MaxUnpool):
    """Puts the maxima of MaxPool3d back to their places; see MaxUnpool2d."""

    axes = 3


class _LPPool(Module):
    def __init__(
        self,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def _options(self) -> tuple[Any, ...]:
        return float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """`(Σ x^p)^(1/p)` over windows of the last axis."""

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.lp_pool1d(input, *self._options())
        return y


class LPPool2d(_LPPool):
    """`(Σ x^p)^(1/p)` over windows of the last two axes."""

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.lp_pool2d(input, *self._options())
        return y


class LPPool3d(_LPPool):
    """`(Σ x^p)^(1/p)` over windows of the last three axes."""

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.lp_pool3d(input, *self._options())
        return y


class _FractionalMaxPool(Module):
    axes: int

    def __init__(
        self,
        kernel_size: Size,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, axes = type(self).__name__, self.axes
        if (output_size is None) == (output_ratio is None):
            raise ArgumentError(
                f"{name}: exactly one of output_size and output_ratio must be given."
            )
        self.kernel_size = pair(name, "kernel_size", kernel_size, 1, axes)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        given = output_size is None
        self.output_size = None if given else pair(name, "output_size", output_size, 1, axes)
        several = isinstance(output_ratio, tuple | list)
        ratios = tuple(output_ratio) if several else (output_ratio,) * axes
        self.output_ratio = ratios if given else None
        if given and not all(0 < r < 1 for r in ratios):
            raise ArgumentError(f"{name}: output_ratio must be from 0 to 1. Got {output_ratio!r}.")

    def forward(self, input: Tensor) -> Any:
        function = F.fractional_max_pool2d if self.axes == 2 else F.fractional_max_pool3d
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows at random places; see `functional.fractional_max_pool2d`."""

    axes = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows at random places of volumes; see `functional.fractional_max_pool2d`."""

    axes = 3
