"""Transposed convolution layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError, describe
from ..ops.creation import empty
from ..tensor import Parameter, Tensor
from . import functional as F
from .convolution import _ConvNd
from .functional.checks import Size, pair
from .linear import positive, reset_weight_and_bias


class _ConvTransposeNd(_ConvNd):
    axes: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
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
        if padding_mode != "zeros":
            raise ArgumentError(f"{name}: padding_mode must be 'zeros'. Got {padding_mode!r}.")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = pair(name, "kernel_size", kernel_size, 1, axes)
        self.stride = pair(name, "stride", stride, 1, axes)
        self.padding = pair(name, "padding", padding, 0, axes)
        self.dilation = pair(name, "dilation", dilation, 1, axes)
        self.output_padding = pair(name, "output_padding", output_padding, 0, axes)
        self.padding_mode = padding_mode
        sizes = (in_channels, out_channels // groups, *self.kernel_size)
        self.weight = Parameter(empty(*sizes, device=device, dtype=dtype))
        self.bias = Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new start values, uniform in ±1/sqrt(fan_in)."""
        reset_weight_and_bias(self.weight, self.bias)

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.axes - 1]
        y: Tensor = function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            extra,
            self.groups,
            self.dilation,
        )
        return y

    def _extra(self, x: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """The output_padding that gives the size asked for."""
        name, wanted = type(self).__name__, tuple(output_size)
        lead = x.ndim - self.axes
        if len(wanted) == x.ndim:
            wanted = wanted[lead:]
        if len(wanted) != self.axes:
            raise ShapeError(
                f"{name}: output_size must have {self.axes} or {x.ndim} numbers. "
                f"Got {tuple(output_size)} for {describe(x)}."
            )
        options = (self.kernel_size, self.stride, self.padding, self.dilation)
        sizes = zip(x.shape[lead:], *options, strict=True)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, k, s, p, d in sizes]
        extra = tuple(w - n for w, n in zip(wanted, least, strict=True))
        if any(not 0 <= e < s for e, s in zip(extra, self.stride, strict=True)):
            most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
            raise ArgumentError(
                f"{name}: output_size must be from {least} to {most} for the input {describe(x)}. "
                f"Got {tuple(output_size)}."
            )
        return extra

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0,) * self.axes:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.axes:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.axes:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution along the last axis of f[N, C, L]; see ConvTranspose2d."""

    axes = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution along the last two axes of f[N, C, H, W].

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.
        kernel_size: Size of the window; a number or (height, width), as the others.
        stride: Step from one window to the next in the output.
        padding: Rows and columns cut off on all sides of the output.
        output_padding: Rows and columns added at the end.
        groups: The channels are split into so many independent parts.
        bias: Whether a bias is added.
        dilation: Step between the elements of the window.
        padding_mode: "zeros" only.
        device: Where the parameters live.
        dtype: Their dtype.

    `forward(input, output_size)` chooses output_padding so that the output has that size.
    """

    axes = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution along the last three axes of f[N, C, D, H, W]; see ConvTranspose2d."""

    axes = 3
