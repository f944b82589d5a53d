"""Pooling under PyTorch's names."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import pool as ops
from ...ops.unfold import Window
from ...tensor import Tensor
from .checks import Size, batched, pair


def _sizes(
    name: str,
    x: Tensor,
    kernel: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    axes: int,
) -> Window:
    """The window with the padding after the last element that makes the number of outputs right."""
    kernels = pair(name, "kernel_size", kernel, 1, axes)
    empty = stride is None or (isinstance(stride, tuple | list) and not stride)
    steps = kernels if empty else pair(name, "stride", stride, 1, axes)
    low, gaps = pair(name, "padding", padding, 0, axes), pair(name, "dilation", dilation, 1, axes)
    high = []
    for n, k, s, p, d in zip(x.shape[2:], kernels, steps, low, gaps, strict=True):
        if p > k // 2:
            raise ArgumentError(
                f"{name}: padding must be at most half of the window. Got {p} for a window of {k}."
            )
        span = n + 2 * p - d * (k - 1) - 1
        if span < 0:
            raise ShapeError(
                f"{name}: the window must fit into the padded input. Got a window of "
                f"{d * (k - 1) + 1} on {n + 2 * p} elements of {describe(x)}. Use a smaller window "
                "or fewer layers that shrink the image."
            )
        outputs = -(-span // s) + 1 if ceil_mode else span // s + 1
        if ceil_mode and (outputs - 1) * s >= n + p:
            outputs -= 1  # a window that starts in the padding after the image is dropped
        high.append(max(0, (outputs - 1) * s + d * (k - 1) + 1 - n - p))
    one, none = (1,) * (2 - axes), (0,) * (2 - axes)
    return Window(
        one + kernels,  # type: ignore[arg-type]
        one + steps,  # type: ignore[arg-type]
        none + low,  # type: ignore[arg-type]
        none + tuple(high),
        one + gaps,  # type: ignore[arg-type]
    )


def _max_pool(
    name: str,
    input: Tensor,
    kernel: Size,
    stride: Size | None,
    padding: Size,
    dilation: Size,
    ceil_mode: bool,
    return_indices: bool,
    axes: int,
) -> Any:
    x, single = batched(name, input, axes)
    window = _sizes(name, x, kernel, stride, padding, dilation, ceil_mode, axes)
    planes = x.unsqueeze(2) if axes == 1 else x
    results = [ops.max_pool(planes, window=window)]
    if return_indices:
        results.append(ops.max_pool_indices(planes.detach(), window=window))
    results = [y.squeeze(2) if axes == 1 else y for y in results]
    results = [y.squeeze(0) if single else y for y in results]
    return tuple(results) if return_indices else results[0]


def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window along the last axis of f[N, C, L]; see `max_pool2d`."""
    return _max_pool(
        "max_pool1d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1
    )


def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of f[N, C, H, W]; the gradient goes to the first maximum.

    Args:
        input: f[N, C, H, W] or f[C, H, W].
        kernel_size: Size of the window.
        stride: Step of the window; default: its size.
        padding: Elements added on all sides, which never win.
        dilation: Step between the elements of the window.
        ceil_mode: Also use a last window that does not fit completely.
        return_indices: Also return the flat positions of the maxima in each plane.

    Raises:
        ShapeError: The window is larger than the input.
    """
    return _max_pool(
        "max_pool2d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2
    )


def _avg_pool(
    name: str,
    input: Tensor,
    kernel: Size,
    stride: Size | None,
    padding: Size,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    axes: int,
) -> Tensor:
    x, single = batched(name, input, axes)
    _need_floating(name, x)
    if divisor_override == 0:
        raise ArgumentError(f"{name}: divisor_override must not be 0.")
    window = _sizes(name, x, kernel, stride, padding, 1, ceil_mode, axes)
    planes = x.unsqueeze(2) if axes == 1 else x
    outputs = window.output(*planes.shape[2:])
    weights = [
        ops.window_weights(
            planes.shape[2 + i],
            window.kernel[i],
            window.stride[i],
            window.low[i],
            outputs[i],
            count_include_pad,
            None if divisor_override is None else (divisor_override if i else 1),
        )
        for i in range(2)
    ]
    return _averaged(planes, weights[0], weights[1], axes, single)


def _averaged(planes: Tensor, rows: Any, columns: Any, axes: int, single: bool) -> Tensor:
    y = ops.average(planes, rows=rows, columns=columns)
    y = y.squeeze(2) if axes == 1 else y
    return y.squeeze(0) if single else y


def _need_floating(name: str, x: Tensor) -> None:
    if not x.dtype.is_floating_point:
        raise DtypeError(f"{name}: the input must be floating. Got {describe(x)}. Use .float().")


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window along the last axis of f[N, C, L]; see `avg_pool2d`."""
    return _avg_pool(
        "avg_pool1d", input, kernel_size, stride, padding, ceil_mode, count_include_pad, None, 1
    )


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of f[N, C, H, W].

    Args:
        input: f[N, C, H, W] or f[C, H, W].
        kernel_size: Size of the window.
        stride: Step of the window; default: its size.
        padding: Zeros added on all sides.
        ceil_mode: Also use a last window that does not fit completely.
        count_include_pad: Whether those zeros count as elements.
        divisor_override: Divide by this number instead of the number of elements.
    """
    return _avg_pool(
        "avg_pool2d",
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        2,
    )


def _adaptive(name: str, input: Tensor, output_size: Any, axes: int) -> Tensor:
    x, single = batched(name, input, axes)
    _need_floating(name, x)
    sizes = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * axes
    valid = all(n is None or (isinstance(n, int) and n > 0) for n in sizes)
    if len(sizes) != axes or not valid:
        raise ArgumentError(
            f"{name}: output_size must be {axes} whole number(s) of at least 1, or None to keep an "
            f"axis. Got {output_size!r}."
        )
    if not all(x.shape[2:]):
        raise ShapeError(f"{name}: the axes to average must not be empty. Got {describe(x)}.")
    if all(n == 1 for n in sizes):
        y = x.mean(tuple(range(-axes, 0)), keepdim=True)
        return y.squeeze(0) if single else y
    planes = x.unsqueeze(2) if axes == 1 else x
    wanted = (1, *sizes) if axes == 1 else sizes
    rows, columns = (
        ops.adaptive_weights(n, n if m is None else m)
        for n, m in zip(planes.shape[2:], wanted, strict=True)
    )
    return _averaged(planes, rows, columns, axes, single)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that divide the last axis into `output_size` parts."""
    return _adaptive("adaptive_avg_pool1d", input, output_size, 1)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that divide the last two axes into `output_size` parts; None keeps one."""
    return _adaptive("adaptive_avg_pool2d", input, output_size, 2)
