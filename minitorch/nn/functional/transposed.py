"""Transposed convolution under PyTorch's names: the gradient of a convolution as a layer."""

from __future__ import annotations

from ...errors import ArgumentError, ShapeError, describe
from ...ops import linalg
from ...ops.conv import transposed_convolution
from ...ops.unfold import Window
from ...tensor import Tensor
from .checks import Size, batched, need_one_float, pair
from .conv import check_bias, check_channels, check_weight, line, plane, plane_window


def _transposed(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size,
    padding: Size,
    output_padding: Size,
    groups: int,
    dilation: Size,
    axes: int,
) -> Tensor:
    x, single = batched(name, x, axes)
    check_weight(name, weight, bias, groups, axes)
    channels, per_group = weight.shape[:2]
    if channels % groups:
        raise ArgumentError(
            f"{name}: groups must divide the {channels} input channels. Got {groups!r}."
        )
    check_bias(name, bias, per_group * groups)
    check_channels(name, x, weight, channels, groups)
    x, weight, bias = linalg.autocast_operands(x, weight, bias)
    need_one_float(name, x, weight, bias)
    steps, low = pair(name, "stride", stride, 1, axes), pair(name, "padding", padding, 0, axes)
    gaps = pair(name, "dilation", dilation, 1, axes)
    extra = pair(name, "output_padding", output_padding, 0, axes)
    if any(e >= max(s, d) for e, s, d in zip(extra, steps, gaps, strict=True)):
        raise ArgumentError(
            f"{name}: output_padding must be smaller than stride or dilation. "
            f"Got {extra} for stride {steps} and dilation {gaps}."
        )
    kernel = tuple(weight.shape[2:])
    sizes = zip(x.shape[2:], kernel, steps, low, gaps, extra, strict=True)
    size = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, k, s, p, d, e in sizes)
    if not all(x.shape[2:]) or min(size) < 1:
        raise ShapeError(
            f"{name}: the output must have at least 1 element on each axis. Got {size} for the "
            f"input {describe(x)} and the weight {describe(weight)}. Use less padding."
        )
    high = tuple(p - e for p, e in zip(low, extra, strict=True))
    window = plane_window(Window(kernel, steps, low, high, gaps))
    y = transposed_convolution(
        plane(x, axes),
        plane(weight, axes),
        bias,
        window=window,
        groups=groups,
        size=(1, *size) if axes == 1 else size,
    )
    y = line(y, axes)
    return y.squeeze(0) if single else y


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Transposed convolution along the last axis; arguments as in `conv_transpose2d`."""
    return _transposed(
        "conv_transpose1d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        1,
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Transposed convolution along the last two axes: each input element adds a scaled window.

    `H_out = (H - 1) · stride - 2 · padding + dilation · (KH - 1) + output_padding + 1`

    Args:
        input: f[N, C_in, H, W] or f[C_in, H, W].
        weight: f[C_in, C_out / groups, KH, KW].
        bias: f[C_out] or None.
        stride: Step from one window to the next in the output.
        padding: Rows and columns cut off on all sides of the output.
        output_padding: Rows and columns added at the end, smaller than stride or dilation.
        groups: The channels are split into so many independent parts.
        dilation: Step between the elements of the window.

    Returns:
        f[N, C_out, H_out, W_out].

    Raises:
        ShapeError: Channels do not fit, or nothing is left of the output.
        ArgumentError: output_padding is too large, or groups do not divide the channels.

    Source: Zeiler et al., Deconvolutional Networks, 2010.
    """
    return _transposed(
        "conv_transpose2d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        2,
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """Transposed convolution along the last three axes; arguments as in `conv_transpose2d`."""
    return _transposed(
        "conv_transpose3d",
        input,
        weight,
        bias,
        stride,
        padding,
        output_padding,
        groups,
        dilation,
        3,
    )
