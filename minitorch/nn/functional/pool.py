"""Pooling under PyTorch's names."""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError, ShapeError, describe
from ...ops import pool as ops
from ...ops.resample import adaptive_weights, resample, window_weights
from ...ops.unfold import Window
from ...tensor import Tensor
from .checks import Size, batched, need_floating, pair
from .conv import line, plane, plane_window


def window_of(
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
        if p > (d * (k - 1) + 1) // 2:
            raise ArgumentError(
                f"{name}: padding must be at most half of the window. "
                f"Got {p} for a window of {d * (k - 1) + 1}."
            )
        span = n + 2 * p - d * (k - 1) - 1
        outputs = -(-span // s) + 1 if ceil_mode else span // s + 1
        if outputs < 1:
            raise ShapeError(
                f"{name}: the window must fit into the padded input. Got a window of "
                f"{d * (k - 1) + 1} on {n + 2 * p} elements of {describe(x)}. Use a smaller window "
                "or fewer layers that shrink the image."
            )
        if d > 1 and x.shape[0] and any(start % d >= n for start in range(-p, 0, s)):
            raise ShapeError(
                f"{name}: every window must have an element of the image. Got padding {p} and "
                f"dilation {d} for {describe(x)}. Use less padding."
            )
        if ceil_mode and (outputs - 1) * s >= n + p:
            outputs -= 1  # a window that starts in the padding after the image is dropped
        high.append(max(0, (outputs - 1) * s + d * (k - 1) + 1 - n - p))
    return Window(kernels, steps, low, tuple(high), gaps)


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
    _need_elements(name, x)
    window = plane_window(window_of(name, x, kernel, stride, padding, dilation, ceil_mode, axes))
    planes = plane(x, axes)
    results = [ops.max_pool(planes, window=window)]
    if return_indices:
        results.append(ops.max_pool_indices(planes.detach(), window=window))
    results = [line(y, axes) for y in results]
    results = [y.squeeze(0) if single else y for y in results]
    return tuple(results) if return_indices else results[0]


def _need_elements(name: str, x: Tensor) -> None:
    if not all(x.shape[1:]):
        raise ShapeError(f"{name}: only the batch may be empty. Got {describe(x)}.")


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


def max_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of f[N, C, D, H, W]; see `max_pool2d`."""
    return _max_pool(
        "max_pool3d", input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3
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
    need_floating(name, x)
    _need_elements(name, x)
    if divisor_override == 0:
        raise ArgumentError(f"{name}: divisor_override must not be 0.")
    window = window_of(name, x, kernel, stride, padding, 1, ceil_mode, axes)
    if axes == 3 and any(n < k for n, k in zip(x.shape[2:], window.kernel, strict=True)):
        raise ShapeError(
            f"{name}: the image must not be smaller than the window. Got {window.kernel} for "
            f"{describe(x)}. Use a smaller window."
        )
    outputs = window.output(*x.shape[2:])
    divisors = [divisor_override, *[1] * (axes - 1)] if divisor_override else [None] * axes
    weights = tuple(
        window_weights(n, k, s, p, o, bool(count_include_pad), divisor)
        for n, k, s, p, o, divisor in zip(
            x.shape[2:], window.kernel, window.stride, window.low, outputs, divisors, strict=True
        )
    )
    y = resample(x, weights=weights)
    return y.squeeze(0) if single else y


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


def avg_pool3d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window of f[N, C, D, H, W]; see `avg_pool2d`."""
    return _avg_pool(
        "avg_pool3d",
        input,
        kernel_size,
        stride,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
        3,
    )


def adaptive_sizes(name: str, x: Tensor, output_size: Any, axes: int) -> tuple[int, ...]:
    """The length of each axis of the output; None keeps that of the input."""
    given = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,)
    given = given * axes if len(given) == 1 else given
    valid = all(n is None or (isinstance(n, int) and n >= 0) for n in given)
    if len(given) != axes or not valid:
        raise ArgumentError(
            f"{name}: output_size must be {axes} whole number(s), or None to keep an axis. "
            f"Got {output_size!r}."
        )
    if not all(x.shape[1:]):
        raise ShapeError(f"{name}: only the batch may be empty. Got {describe(x)}.")
    return tuple([n if m is None else m for n, m in zip(x.shape[2:], given, strict=True)])


def _adaptive(name: str, input: Tensor, output_size: Any, axes: int) -> Tensor:
    x, single = batched(name, input, axes)
    need_floating(name, x)
    sizes = adaptive_sizes(name, x, output_size, axes)
    if all(n == 1 for n in sizes):
        y = x.mean(tuple(range(-axes, 0)), keepdim=True)
    else:
        pairs = zip(x.shape[2:], sizes, strict=True)
        y = resample(x, weights=tuple(adaptive_weights(n, m) for n, m in pairs))
    return y.squeeze(0) if single else y


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that divide the last axis into `output_size` parts."""
    return _adaptive("adaptive_avg_pool1d", input, output_size, 1)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that divide the last two axes into `output_size` parts; None keeps one."""
    return _adaptive("adaptive_avg_pool2d", input, output_size, 2)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows that divide the last three axes into `output_size` parts."""
    return _adaptive("adaptive_avg_pool3d", input, output_size, 3)
