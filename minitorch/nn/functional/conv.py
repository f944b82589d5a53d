"""Convolution, patches and padding under PyTorch's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, ShapeError, describe
from ...ops import indexing, linalg, shape
from ...ops.conv import convolution
from ...ops.creation import arange
from ...ops.unfold import Window, fold_columns, unfold_columns
from ...tensor import Tensor
from .checks import Size, batched, need_float, need_tensor, pair


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
    _check_channels(name, x, weight, bias, groups, axes)
    x, weight, bias = linalg.autocast_operands(x, weight, bias)
    need_float(name, x, weight, bias)
    kernel = tuple(weight.shape[2:])
    steps, gaps = pair(name, "stride", stride, 1, axes), pair(name, "dilation", dilation, 1, axes)
    low, high = _padding(name, padding, kernel, steps, gaps, axes)
    if axes == 1:
        x, weight = x.unsqueeze(2), weight.unsqueeze(2)
        kernel, steps, gaps = (1, *kernel), (1, *steps), (1, *gaps)
        low, high = (0, *low), (0, *high)
    window = Window(kernel, steps, low, high, gaps)  # type: ignore[arg-type]
    check_fits(name, x, window)
    y = convolution(x, weight, bias, window=window, groups=groups)
    y = y.squeeze(2) if axes == 1 else y
    return y.squeeze(0) if single else y


def _check_channels(
    name: str, x: Tensor, weight: Tensor, bias: Tensor | None, groups: int, axes: int
) -> None:
    need_tensor(name, "weight", weight)
    if weight.ndim != axes + 2:
        sizes = "[out, in/groups, L]" if axes == 1 else "[out, in/groups, KH, KW]"
        raise ShapeError(f"{name}: weight must have the axes {sizes}. Got {describe(weight)}.")
    out, per_group = weight.shape[:2]
    if not isinstance(groups, int) or groups < 1 or out % groups:
        raise ArgumentError(
            f"{name}: groups must divide the {out} output channels. Got {groups!r}."
        )
    if x.shape[1] != per_group * groups:
        raise ShapeError(
            f"{name}: the input must have {per_group * groups} channels (axis 1). "
            f"Got {describe(x)} for the weight {describe(weight)} with groups={groups}. "
            "Images of shape HWC need permute(0, 3, 1, 2)."
        )
    if bias is not None and tuple(bias.shape) != (out,):
        raise ShapeError(f"{name}: bias must have the shape ({out},). Got {describe(bias)}.")


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


def unfold(
    input: Tensor, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
) -> Tensor:
    """The patches of images as columns: f[N, C, H, W] to f[N, C·KH·KW, L]."""
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
    """Adds columns back into images: f[N, C·KH·KW, L] to f[N, C, H, W]."""
    x, single = (input.unsqueeze(0), True) if input.ndim == 2 else (input, False)
    window = _window("fold", kernel_size, dilation, padding, stride)
    h, w = pair("fold", "output_size", output_size, 1)
    area, (oh, ow) = window.kernel[0] * window.kernel[1], window.output(h, w)
    if x.ndim != 3 or x.shape[1] % area or x.shape[2] != oh * ow:
        raise ShapeError(
            f"fold: the input must be [N, C·{area}, {oh * ow}] for an output of {h}×{w}. "
            f"Got {describe(input)}."
        )
    cols = x.reshape(x.shape[0], -1, area, oh * ow)
    y = fold_columns(cols, window=window, size=(h, w))
    return y.squeeze(0) if single else y


def _window(name: str, kernel: Size, dilation: Size, padding: Size, stride: Size) -> Window:
    both = pair(name, "padding", padding, 0)
    return Window(
        pair(name, "kernel_size", kernel, 1),  # type: ignore[arg-type]
        pair(name, "stride", stride, 1),  # type: ignore[arg-type]
        both,  # type: ignore[arg-type]
        both,  # type: ignore[arg-type]
        pair(name, "dilation", dilation, 1),  # type: ignore[arg-type]
    )


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """Adds elements around the last axes.

    Args:
        input: The tensor.
        pad: (before, after) of the last axis, then of the one before it, and so on; negative
            numbers cut.
        mode: "constant", "reflect", "replicate" or "circular".
        value: What "constant" fills in; default 0.

    Raises:
        ArgumentError: Unknown mode, or an odd number of widths.
        ShapeError: More widths than axes, or a reflection wider than the axis.
    """
    if len(pad) % 2:
        raise ArgumentError(f"pad: widths come in pairs (before, after). Got {tuple(pad)}.")
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    if len(pairs) > input.ndim:
        raise ShapeError(
            f"pad: there are more widths than axes. Got {tuple(pad)} for {describe(input)}."
        )
    if mode == "constant":
        widths = [(0, 0)] * (input.ndim - len(pairs)) + pairs[::-1]
        return shape.pad_constant(input, widths, 0.0 if value is None else value)
    if mode not in _SOURCES:
        raise ArgumentError(
            f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular'. Got {mode!r}."
        )
    for i, (before, after) in enumerate(pairs):
        if before or after:
            input = _pad_axis(input, input.ndim - 1 - i, before, after, mode)
    return input


def _pad_axis(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    size = x.shape[axis]
    widest = {"reflect": size - 1, "replicate": max(before, after, 0), "circular": size}[mode]
    if not size or max(before, after) > widest:
        raise ShapeError(
            f"pad: mode '{mode}' adds at most {widest} elements on each side of axis {axis}. "
            f"Got {(before, after)} for {describe(x)}."
        )
    places = arange(-before, size + after, device=x.device)
    return indexing.index_select(x, axis, _SOURCES[mode](places, size))


_SOURCES = {
    "reflect": lambda i, n: (n - 1) - ((n - 1) - i.abs()).abs(),
    "replicate": lambda i, n: i.clamp(0, n - 1),
    "circular": lambda i, n: i % n,
}
