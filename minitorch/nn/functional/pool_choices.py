"""Pooling that chooses elements in windows of other kinds, puts them back, or sums powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, DtypeError, IndexRangeError, ShapeError, describe
from ...ops import elementwise, joining
from ...ops import pool as ops
from ...ops.creation import arange, zeros
from ...tensor import Tensor
from .checks import Size, batched, need_tensor, pair
from .pool import (
    adaptive_sizes,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)


def _adaptive_max(
    name: str, input: Tensor, output_size: Any, return_indices: bool, axes: int
) -> Any:
    x, single = batched(name, input, axes)
    sizes = adaptive_sizes(name, x, output_size, axes)
    if 0 in sizes:
        y = zeros(*x.shape[:2], *sizes, dtype=x.dtype, device=x.device)
        index = y.long()
    else:
        pairs = list(zip(x.shape[2:], sizes, strict=True))
        if not any(n % m for n, m in pairs):
            kernel = [n // m for n, m in pairs]
            pool = (max_pool1d, max_pool2d, max_pool3d)[axes - 1]
            return pool(input, kernel, return_indices=return_indices)
        windows = tuple(ops.adaptive_windows(n, m) for n, m in pairs)
        y, index = ops.windowed_max(x, windows=windows)
    if single:
        y, index = y.squeeze(0), index.squeeze(0)
    return (y, index) if return_indices else y


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that divide the last axis into `output_size` parts."""
    return _adaptive_max("adaptive_max_pool1d", input, output_size, return_indices, 1)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that divide the last two axes into `output_size` parts.

    Args:
        input: f[N, C, H, W] or f[C, H, W].
        output_size: A number or (height, width); None keeps an axis.
        return_indices: Also return the flat positions of the maxima in each plane.

    Raises:
        ShapeError: An axis other than the batch is empty.
    """
    return _adaptive_max("adaptive_max_pool2d", input, output_size, return_indices, 2)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima over windows that divide the last three axes into `output_size` parts."""
    return _adaptive_max("adaptive_max_pool3d", input, output_size, return_indices, 3)


def _max_unpool(
    name: str,
    input: Tensor,
    indices: Tensor,
    kernel: Size,
    stride: Size | None,
    padding: Size,
    output_size: Sequence[int] | None,
    axes: int,
) -> Tensor:
    x, single = batched(name, input, axes)
    need_tensor(name, "indices", indices)
    if indices.shape != input.shape or indices.dtype.name != "int64":
        raise DtypeError(
            f"{name}: indices must be int64 with the shape of the input. Got {describe(indices)} "
            f"for {describe(input)}. Use what max_pool returned."
        )
    kernels = pair(name, "kernel_size", kernel, 1, axes)
    steps = kernels if not stride else pair(name, "stride", stride, 1, axes)
    low = pair(name, "padding", padding, 0, axes)
    sizes = zip(x.shape[2:], kernels, steps, low, strict=True)
    size = tuple((n - 1) * s + k - 2 * p for n, k, s, p in sizes)
    if output_size is not None:
        size = _unpooled_size(name, tuple(output_size), size, steps, axes)
    n, c = x.shape[:2]
    flat, places = math.prod(x.shape[2:]), math.prod(size)
    index = indices.reshape(n, c, flat)
    if x.device.type == "cpu" and index.numel():
        low_, high_ = int(index.min()), int(index.max())
        if low_ < 0 or high_ >= places:
            raise IndexRangeError(
                f"{name}: indices must be from 0 to {places - 1} for an output of {size}. "
                f"Got {low_} to {high_}. Pass the output_size of the pooled image."
            )
    empty = zeros(n, c, places, dtype=x.dtype, device=x.device)
    y = empty.scatter(2, index, x.reshape(n, c, flat)).reshape(n, c, *size)
    return y.squeeze(0) if single else y


def _unpooled_size(
    name: str, wanted: tuple[int, ...], size: tuple[int, ...], steps: tuple[int, ...], axes: int
) -> tuple[int, ...]:
    if len(wanted) == axes + 2:
        wanted = wanted[2:]
    if len(wanted) != axes:
        raise ArgumentError(
            f"{name}: output_size must have {axes} or {axes + 2} numbers. Got {wanted}."
        )
    for w, n, s in zip(wanted, size, steps, strict=True):
        if not n - s < w < n + s:
            raise ArgumentError(
                f"{name}: each size must be less than a step from {size}, the steps being {steps}. "
                f"Got {wanted}."
            )
    return wanted


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts the maxima of `max_pool1d` back to their places; see `max_unpool2d`."""
    return _max_unpool("max_unpool1d", input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts the maxima of `max_pool2d` back to their places; the other elements are 0.

    Args:
        input: The maxima, f[N, C, H, W] or f[C, H, W].
        indices: Their flat positions, as max_pool2d returns them.
        kernel_size: Size of the window of the pooling.
        stride: Its step; default: its size.
        padding: Its padding.
        output_size: Size of the image where several are possible.

    Raises:
        DtypeError: `indices` is not int64 of the shape of the input.
        ArgumentError: `output_size` cannot come from that pooling.
        IndexRangeError: A position is outside of the output (checked on the CPU).
    """
    return _max_unpool("max_unpool2d", input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Puts the maxima of `max_pool3d` back to their places; see `max_unpool2d`."""
    return _max_unpool("max_unpool3d", input, indices, kernel_size, stride, padding, output_size, 3)


def _lp_pool(
    name: str,
    x: Tensor,
    norm_type: float,
    kernel: Size,
    stride: Size | None,
    ceil_mode: bool,
    axes: int,
) -> Tensor:
    average = (avg_pool1d, avg_pool2d, avg_pool3d)[axes - 1]
    y = average(x**norm_type, kernel, stride, 0, ceil_mode)
    count = math.prod(pair(name, "kernel_size", kernel, 1, axes))
    return (elementwise.sign(y) * elementwise.relu(y.abs()) * count) ** (1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`(Σ x^p)^(1/p)` over windows of the last axis."""
    return _lp_pool("lp_pool1d", input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`(Σ x^p)^(1/p)` over windows of the last two axes.

    Args:
        input: f[N, C, H, W] or f[C, H, W].
        norm_type: p.
        kernel_size: Size of the window.
        stride: Its step; default: its size.
        ceil_mode: Also use a last window that does not fit completely.
    """
    return _lp_pool("lp_pool2d", input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Size,
    stride: Size | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`(Σ x^p)^(1/p)` over windows of the last three axes."""
    return _lp_pool("lp_pool3d", input, norm_type, kernel_size, stride, ceil_mode, 3)


def _fractional(
    name: str,
    input: Tensor,
    kernel: Size,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Tensor | None,
    axes: int,
) -> Any:
    x, single = batched(name, input, axes)
    kernels = pair(name, "kernel_size", kernel, 1, axes)
    if (output_size is None) == (output_ratio is None):
        raise ArgumentError(f"{name}: exactly one of output_size and output_ratio must be given.")
    if output_size is None:
        given = output_ratio if isinstance(output_ratio, tuple | list) else (output_ratio,) * axes
        if len(given) != axes or not all(0 < r < 1 for r in given):
            raise ArgumentError(
                f"{name}: output_ratio must be from 0 to 1, {axes} times. Got {output_ratio!r}."
            )
        output_size = tuple(int(n * r) for n, r in zip(x.shape[2:], given, strict=True))
    outputs = pair(name, "output_size", output_size, 1, axes)
    for n, k, o in zip(x.shape[2:], kernels, outputs, strict=True):
        if o + k - 1 > n - (axes == 3):
            raise ShapeError(
                f"{name}: output_size + kernel_size - 1 must be at most the axis (less than it for "
                f"volumes). Got {outputs} and {kernels} for {describe(x)}."
            )
    n, c = x.shape[:2]
    if samples is None:
        samples = random_samples(n, c, axes, x)
    index = _fractional_places(x, samples, kernels, outputs)
    values = ops.picked(x.detach(), index.reshape(n, c, -1, index.shape[-1])).reshape(index.shape)
    best = values.argmax(-1)
    index = index.gather(index.ndim - 1, best.unsqueeze(-1)).squeeze(-1)
    results = [ops.picked(x, index), index]
    results = [y.squeeze(0) if single else y for y in results]
    return tuple(results) if return_indices else results[0]


def random_samples(n: int, c: int, axes: int, like: Tensor) -> Tensor:
    """Uniform numbers f[n, c, axes] for the offsets of fractional pooling."""
    from ...ops.sampling import rand

    return rand(n, c, axes, dtype=like.dtype, device=like.device)


def _fractional_places(
    x: Tensor, samples: Tensor, kernels: tuple[int, ...], outputs: tuple[int, ...]
) -> Tensor:
    """Flat positions int64[N, C, *outputs, K] of the elements of each window."""
    axes, sizes = len(kernels), tuple(x.shape[2:])
    places: Any = 0
    for i, (n, k, o) in enumerate(zip(sizes, kernels, outputs, strict=True)):
        # The first sample belongs to the last axis.
        u = samples[:, :, axes - 1 - i if axes == 2 else i].unsqueeze(-1)
        starts = _fractional_starts(u, n, k, o)
        taps = starts.unsqueeze(-1) + arange(k, device=x.device)
        stride = math.prod(sizes[i + 1 :])
        shape = [*taps.shape[:2], *[1] * (2 * axes)]
        shape[2 + i], shape[2 + axes + i] = o, k
        places = places + (taps * stride).reshape(shape)
    return places.reshape(*places.shape[: 2 + axes], math.prod(kernels))


def _fractional_starts(u: Tensor, size: int, kernel: int, outputs: int) -> Tensor:
    """Where the windows of an axis start: rising steps, and the last window ends the axis."""
    last = arange(1, device=u.device) + (size - kernel)
    last = last.expand(*u.shape[:-1], 1)
    if outputs == 1:
        return last
    step = (size - kernel) / (outputs - 1)
    i = arange(outputs - 1, device=u.device)
    starts = ((i.to(u.dtype) + u) * step).long() - (u * step).long()
    return joining.cat([starts, last], -1)


def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Size,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima of windows at random places, so many that the output has the size asked for.

    Args:
        input: f[N, C, H, W] or f[C, H, W].
        kernel_size: Size of the window.
        output_size: Size of the output.
        output_ratio: Or its size as a share of the input's.
        return_indices: Also return the flat positions of the maxima in each plane.
        _random_samples: Offsets f[N, C, 2] from 0 to 1 instead of random ones.

    Source: Graham, Fractional Max-Pooling, 2014.
    """
    return _fractional(
        "fractional_max_pool2d",
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
        2,
    )


def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Size,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Maxima of windows at random places of f[N, C, D, H, W]; see `fractional_max_pool2d`."""
    return _fractional(
        "fractional_max_pool3d",
        input,
        kernel_size,
        output_size,
        output_ratio,
        return_indices,
        _random_samples,
        3,
    )
