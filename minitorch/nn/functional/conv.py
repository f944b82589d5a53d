"""Convolution and patches under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.mode import state
from ...errors import ArgumentError, ShapeError, describe
from ...ops import linalg
from ...ops.conv import convolution
from ...ops.unfold import Window, fold_columns, unfold_columns
from ...tensor import Tensor
from .checks import Size, batched, need_one_float, need_tensor, pair


def _conv(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size,
    padding: Size | str,
    dilation: Size,
    groups: int,
    axes: int,
) -> Tensor:
    x, single = batched(name, x, axes)
    options = (stride, padding, dilation, groups)
    try:
        shapes = (x._array.shape, weight._array.shape, bias is None or bias._array.shape)
        key: Any = (shapes, repr(options))  # as text, since True and 1.0 are equal to 1
        window = _windows.get(key)
    except AttributeError:  # no tensor
        key = window = None
    if window is None:
        window = _window_for(name, x, weight, bias, *options, axes)
        if key is not None:
            if len(_windows) >= _MOST_WINDOWS:
                _windows.clear()
            _windows[key] = window
    if state.autocast is not None:
        x, weight, bias = linalg.autocast_operands(x, weight, bias)
    dtype = x._array.dtype
    alike = weight._array.dtype is dtype and (bias is None or bias._array.dtype is dtype)
    if not alike or dtype.kind != "f":
        need_one_float(name, x, weight, bias)
    if axes > 1:
        y = convolution(x, weight, bias, window=window, groups=groups)
    else:
        y = line(convolution(plane(x, 1), plane(weight, 1), bias, window=window, groups=groups), 1)
    return y.squeeze(0) if single else y


_MOST_WINDOWS = 1024
_windows: dict[Any, Window] = {}  # by all that the checks below look at


def _window_for(
    name: str,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Size,
    padding: Size | str,
    dilation: Size,
    groups: int,
    axes: int,
) -> Window:
    """The window of a convolution; raises where something does not fit."""
    check_weight(name, weight, bias, groups, axes)
    out, per_group = weight.shape[:2]
    if out % groups:
        raise ArgumentError(
            f"{name}: groups must divide the {out} output channels. Got {groups!r}."
        )
    check_bias(name, bias, out)
    check_channels(name, x, weight, per_group * groups, groups)
    kernel = tuple(weight.shape[2:])
    steps, gaps = pair(name, "stride", stride, 1, axes), pair(name, "dilation", dilation, 1, axes)
    low, high = _padding(name, padding, kernel, steps, gaps, axes)
    window = plane_window(Window(kernel, steps, low, high, gaps))
    check_fits(name, plane(x, axes), window)
    return window


def plane(x: Tensor, axes: int) -> Tensor:
    """A series as an image with one row; images as they are."""
    return x.unsqueeze(2) if axes == 1 else x


def line(x: Tensor, axes: int) -> Tensor:
    """Undoes `plane`."""
    return x.squeeze(2) if axes == 1 else x


def plane_window(window: Window) -> Window:
    """A window over one axis as one over two."""
    if len(window.kernel) != 1:
        return window
    return Window(*((v, *rest) for v, rest in zip((1, 1, 0, 0, 1), window, strict=True)))


def check_weight(name: str, weight: Tensor, bias: Tensor | None, groups: int, axes: int) -> None:
    """Raises unless `weight` has the axes of a convolution over `axes` axes."""
    need_tensor(name, "weight", weight)
    if weight.ndim != axes + 2:
        sizes = ", ".join(("KD", "KH", "KW")[3 - axes :])
        raise ShapeError(
            f"{name}: weight must have the axes [out, in/groups, {sizes}] (the first two exchanged "
            f"for a transposed convolution). Got {describe(weight)}."
        )
    if not isinstance(groups, int) or groups < 1:
        raise ArgumentError(f"{name}: groups must be a whole number of at least 1. Got {groups!r}.")
    if bias is not None:
        need_tensor(name, "bias", bias)


def check_bias(name: str, bias: Tensor | None, channels: int) -> None:
    """Raises ShapeError unless `bias` has one element for each output channel."""
    if bias is not None and tuple(bias.shape) != (channels,):
        raise ShapeError(f"{name}: bias must have the shape ({channels},). Got {describe(bias)}.")


def check_channels(name: str, x: Tensor, weight: Tensor, channels: int, groups: int) -> None:
    """Raises ShapeError unless the input has so many channels."""
    if x.shape[1] != channels:
        raise ShapeError(
            f"{name}: the input must have {channels} channels (axis 1). "
            f"Got {describe(x)} for the weight {describe(weight)} with groups={groups}. "
            "Images of shape HWC need permute(0, 3, 1, 2)."
        )


def _padding(
    name: str,
    padding: Size | str,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    axes: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How much is added before and after each axis."""
    if not isinstance(padding, str):
        both = pair(name, "padding", padding, 0, axes)
        return both, both
    if padding == "valid":
        return (0,) * axes, (0,) * axes
    if padding != "same":
        raise ArgumentError(
            f"{name}: padding must be whole numbers, 'valid' or 'same'. Got {padding!r}."
        )
    if any(s != 1 for s in stride):
        raise ArgumentError(
            f"{name}: padding='same' needs stride 1. Got stride {stride}. "
            "Give the padding in numbers."
        )
    return same_padding(kernel, dilation)


def same_padding(
    kernel: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding before and after each axis that keeps its length; the odd one goes after."""
    total = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)


def check_fits(name: str, x: Tensor, window: Window) -> None:
    """Raises ShapeError if the window is larger than the padded image."""
    sizes = zip(x.shape[2:], window.low, window.high, window.kernel, window.dilation, strict=True)
    for size, low, high, kernel, dilation in sizes:
        if dilation * (kernel - 1) + 1 > size + low + high:
            raise ShapeError(
                f"{name}: the window must fit into the padded input. Got a window of "
                f"{dilation * (kernel - 1) + 1} on {size + low + high} elements of {describe(x)}. "
                "Use a smaller kernel, more padding, or fewer layers that shrink the image."
            )


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation along the last axis.

    Args:
        input: f[N, C_in, L] or f[C_in, L].
        weight: f[C_out, C_in / groups, K].
        bias: f[C_out] or None.
        stride: Step of the window.
        padding: Zeros on both sides, or "valid" (none) or "same" (the length is kept).
        dilation: Step between the elements of the window.
        groups: The channels are split into so many independent parts.

    Returns:
        f[N, C_out, L_out].

    Raises:
        ShapeError: Channels do not fit, or the window is larger than the input.
    """
    return _conv("conv1d", input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation along the last two axes.

    Args:
        input: f[N, C_in, H, W] or f[C_in, H, W].
        weight: f[C_out, C_in / groups, KH, KW].
        bias: f[C_out] or None.
        stride: Step of the window; a number or (height, width).
        padding: Zeros on all sides, or "valid" (none) or "same" (the size is kept).
        dilation: Step between the elements of the window.
        groups: The channels are split into so many independent parts.

    Returns:
        f[N, C_out, H_out, W_out].

    Raises:
        ShapeError: Channels do not fit, or the window is larger than the input.
    """
    return _conv("conv2d", input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlation along the last three axes; arguments as in `conv2d`.

    Args:
        input: f[N, C_in, D, H, W] or f[C_in, D, H, W].
        weight: f[C_out, C_in / groups, KD, KH, KW].
        bias: f[C_out] or None.
        stride: Step of the window; a number or (depth, height, width).
        padding: Zeros on all sides, or "valid" (none) or "same" (the size is kept).
        dilation: Step between the elements of the window.
        groups: The channels are split into so many independent parts.

    Returns:
        f[N, C_out, D_out, H_out, W_out].

    Raises:
        ShapeError: Channels do not fit, or the window is larger than the input.
    """
    return _conv("conv3d", input, weight, bias, stride, padding, dilation, groups, 3)


def unfold(
    input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """The patches of images as columns: f[N, C, H, W] to f[N, C·KH·KW, L].

    Args:
        input: f[N, C, H, W] or f[C, H, W].
        kernel_size: Size of the window; a number or (height, width), as the next three.
        dilation: Step between the elements of the window.
        padding: Zeros on all sides.
        stride: Step of the window.

    Raises:
        ShapeError: The window is larger than the padded image.
    """
    x, single = batched("unfold", input, 2)
    window = _window("unfold", kernel_size, dilation, padding, stride)
    check_fits("unfold", x, window)
    cols = unfold_columns(x, window=window)
    cols = cols.reshape(cols.shape[0], cols.shape[1] * cols.shape[2], cols.shape[3])
    return cols.squeeze(0) if single else cols


def fold(
    input: Tensor,
    output_size: Size,
    kernel_size: Size,
    dilation: Size = 1,
    padding: Size = 0,
    stride: Size = 1,
) -> Tensor:
    """Adds columns back into images: f[N, C·KH·KW, L] to f[N, C, H, W].

    Args:
        input: f[N, C·KH·KW, L] or f[C·KH·KW, L].
        output_size: (H, W).
        kernel_size: Size of the window; a number or (height, width), as the next three.
        dilation: Step between the elements of the window.
        padding: Zeros on all sides, which are cut off again.
        stride: Step of the window.

    Raises:
        ShapeError: The columns are not those of an image of that size.
    """
    need_tensor("fold", "the input", input)
    x, single = (input.unsqueeze(0), True) if input.ndim == 2 else (input, False)
    window = _window("fold", kernel_size, dilation, padding, stride)
    h, w = pair("fold", "output_size", output_size, 1)
    area, (oh, ow) = window.kernel[0] * window.kernel[1], window.output(h, w)
    if x.ndim != 3 or x.shape[1] % area or x.shape[2] != oh * ow or oh < 1 or ow < 1:
        raise ShapeError(
            f"fold: the input must be [N, C·{area}, {oh * ow}] for an output of {h}×{w}. "
            f"Got {describe(input)}."
        )
    cols = x.reshape(x.shape[0], x.shape[1] // area, area, oh * ow)
    y = fold_columns(cols, window=window, size=(h, w))
    return y.squeeze(0) if single else y


def _window(name: str, kernel: Size, dilation: Size, padding: Size, stride: Size) -> Window:
    both = pair(name, "padding", padding, 0)
    return Window(
        pair(name, "kernel_size", kernel, 1),
        pair(name, "stride", stride, 1),
        both,
        both,
        pair(name, "dilation", dilation, 1),
    )
