"""Convolution layers."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..ops.creation import empty
from ..tensor import Parameter, Tensor
from . import functional as F
from .functional.checks import Size, pair
from .functional.conv import same_padding
from .linear import positive, reset_weight_and_bias
from .module import Module

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What every convolution layer is."""


class _Conv(_ConvNd):
    axes: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name, axes = type(self).__name__, self.axes
        positive(name, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise ArgumentError(
                f"{name}: groups must divide in_channels and out_channels. "
                f"Got groups={groups} for {in_channels} and {out_channels}."
            )
        if padding_mode not in _MODES:
            raise ArgumentError(
                f"{name}: padding_mode must be one of {_MODES}. Got {padding_mode!r}."
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = pair(name, "kernel_size", kernel_size, 1, axes)
        self.stride = pair(name, "stride", stride, 1, axes)
        self.dilation = pair(name, "dilation", dilation, 1, axes)
        self.padding = self._checked_padding(padding)
        self.padding_mode = padding_mode
        sizes = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(empty(*sizes, device=device, dtype=dtype))
        self.bias = Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def _checked_padding(self, padding: Size | str) -> tuple[int, ...] | str:
        name = type(self).__name__
        if not isinstance(padding, str):
            return pair(name, "padding", padding, 0, self.axes)
        if padding not in ("same", "valid"):
            raise ArgumentError(
                f"{name}: padding must be whole numbers, 'valid' or 'same'. Got {padding!r}."
            )
        if padding == "same" and any(s != 1 for s in self.stride):
            raise ArgumentError(
                f"{name}: padding='same' needs stride 1. Got stride {self.stride}. "
                "Give the padding in numbers."
            )
        return padding

    def reset_parameters(self) -> None:
        """Draws new start values, uniform in ±1/sqrt(fan_in)."""
        reset_weight_and_bias(self.weight, self.bias)

    def _padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input with padding that is not zeros, and the padding that is left to do."""
        if self.padding_mode == "zeros":
            return input, self.padding
        if isinstance(self.padding, str):
            none = ((0,) * self.axes,) * 2
            same = self.padding == "same"
            low, high = same_padding(self.kernel_size, self.dilation) if same else none
        else:
            low = high = self.padding
        widths = [n for both in zip(low[::-1], high[::-1], strict=True) for n in both]
        return F.pad(input, widths, self.padding_mode), 0

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0,) * self.axes:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.axes:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_Conv):
    """Convolution along the last axis of f[N, C, L].

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Length of the window.
        stride: Step of the window.
        padding: Elements added on both sides, "valid" (none) or "same" (the length is kept).
        dilation: Step between the elements of the window.
        groups: The channels are split into so many independent parts.
        bias: Whether a bias is added.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: Where the parameters live.
        dtype: Their dtype.
    """

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        x, padding = self._padded(input)
        return F.conv1d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Convolution along the last two axes of f[N, C, H, W].

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window; a number or (height, width), as the next three.
        stride: Step of the window.
        padding: Elements added on all sides, "valid" (none) or "same" (the size is kept).
        dilation: Step between the elements of the window.
        groups: The channels are split into so many independent parts.
        bias: Whether a bias is added.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: Where the parameters live.
        dtype: Their dtype.
    """

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        x, padding = self._padded(input)
        return F.conv2d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Convolution along the last three axes of f[N, C, D, H, W].

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window; a number or (depth, height, width), as the next three.
        stride: Step of the window.
        padding: Elements added on all sides, "valid" (none) or "same" (the size is kept).
        dilation: Step between the elements of the window.
        groups: The channels are split into so many independent parts.
        bias: Whether a bias is added.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: Where the parameters live.
        dtype: Their dtype.
    """

    axes = 3

    def forward(self, input: Tensor) -> Tensor:
        x, padding = self._padded(input)
        return F.conv3d(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)
