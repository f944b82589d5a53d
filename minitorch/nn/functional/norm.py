"""Normalisation under PyTorch's names."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ...dtypes import finfo
from ...errors import ArgumentError, ShapeError, describe
from ...ops import elementwise, norm, primitive
from ...ops.primitive import check_same_device, wrap
from ...ops.recording import as_a_whole
from ...ops.resample import Weights, resample
from ...ops.shape import broadcast_tensors
from ...tensor import Tensor
from .checks import as_tuple, full_float, need_floating, need_one_float, need_tensor


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) · weight + bias` with statistics of each channel.

    Args:
        input: f[N, C, …].
        running_mean: f[C], updated in place in training; used instead of the batch otherwise.
        running_var: f[C], likewise, with the unbiased variance.
        weight: f[C] or None.
        bias: f[C] or None.
        training: Use the statistics of this batch.
        momentum: Share of the new value in the running ones.
        eps: Added to the variance.

    Raises:
        ShapeError: Fewer than 2 axes, or channels that do not fit.
        ArgumentError: Training with one value per channel, or evaluation without statistics.
    """
    need_tensor("batch_norm", "the input", input)
    _check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    channels = input.shape[1]
    count = input.numel() // channels if channels else 0
    if training:
        if count == 1:
            raise ArgumentError(
                f"batch_norm: training needs more than 1 value per channel. Got {describe(input)}. "
                "Drop the last, smaller batch (drop_last=True), or call eval()."
            )
        values = _current(input)
        centre, spread = _statistics(values)
        if count:  # an empty batch has no statistics
            _move(running_mean, running_var, values, centre, spread, momentum)
        mean, var = wrap(centre), wrap(spread)
    elif running_mean is None or running_var is None:
        raise ArgumentError(
            "batch_norm: evaluation needs running_mean and running_var. Got None. "
            "Pass training=True to use the statistics of the batch."
        )
    else:
        # Copies, so that a later training step cannot change what this backward pass needs.
        mean, var = running_mean.detach().clone(), running_var.detach().clone()
    return norm.batch_norm_op(input, weight, bias, mean, var, eps=eps, training=training)


def _check_channels(
    name: str,
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
) -> None:
    """Raises unless x is floating [N, C, …] and the others have one element for each channel."""
    if x.ndim < 2:
        raise ShapeError(f"{name}: the input must be [N, C, …]. Got {describe(x)}.")
    channels = x.shape[1]
    given = {
        "running_mean": running_mean,
        "running_var": running_var,
        "weight": weight,
        "bias": bias,
    }
    for what, t in given.items():
        if t is not None and tuple(t.shape) != (channels,):
            raise ShapeError(
                f"{name}: {what} must have one element for each of the {channels} channels of "
                f"{describe(x)}. Got {describe(t)}. Set num_features={channels}."
            )
    need_floating(name, x)
    check_same_device(name, [x, *[t for t in given.values() if t is not None]])


def _current(x: Tensor) -> Any:
    return x.detach()._array


_statistics = as_a_whole()(norm.statistics)


def _move(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    x: Any,
    centre: Any,
    spread: Any,
    momentum: float,
) -> None:
    """Moves the running statistics towards those of the array x."""
    if primitive.tape is None and running_mean is not None and running_var is not None:
        running = running_mean._array, running_var._array
        if norm.move_statistics(x, centre, spread, *running, momentum):
            running_mean._bump("batch_norm")
            running_var._bump("batch_norm")
            return
    count = x.size // x.shape[1]
    _update(running_mean, centre, momentum)
    _update(running_var, spread, momentum, count / max(1, count - 1))


@as_a_whole("late")
def _update(running: Tensor | None, value: Any, momentum: float, factor: float = 1.0) -> None:
    """`running += momentum · (factor · value - running)` on arrays, noted as one write."""
    if running is not None:
        value = value if factor == 1.0 else value * factor
        array = running._array
        array *= 1 - momentum
        array += (value * momentum).astype(array.dtype, copy=False)
        running._bump("batch_norm")


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """`batch_norm` of every sample on its own.

    Args:
        input: f[N, C, …].
        running_mean: f[C], which moves towards the mean over the samples of their means.
        running_var: f[C], likewise, with the unbiased variances.
        weight: f[C] or None.
        bias: f[C] or None.
        use_input_stats: False takes the running statistics instead of those of the input.
        momentum: Share of the new value in the running ones.
        eps: Added to the variance.

    Raises:
        ShapeError: Fewer than 2 axes, or channels that do not fit.
        ArgumentError: One value per channel of a sample, or no statistics to use.

    Source: Ulyanov et al., Instance Normalization, 2016.
    """
    need_tensor("instance_norm", "the input", input)
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    tensors = (running_mean, running_var, weight, bias)
    _check_channels("instance_norm", input, *tensors)
    n, c, *rest = input.shape
    count = math.prod(rest)
    if count == 1:
        raise ArgumentError(
            "instance_norm: more than 1 value per channel and sample is needed. "
            f"Got {describe(input)}. Use a larger image, or use_input_stats=False."
        )
    if running_mean is not None or running_var is not None:
        centre, spread = norm.statistics(_current(input.reshape(1, n * c, count)))
        unbiased = count / max(1, count - 1)
        _update(running_mean, centre.reshape(n, c).mean(0), momentum)
        _update(running_var, spread.reshape(n, c).mean(0) * unbiased, momentum)
    return norm.group_norm_op(input, weight, bias, groups=c, eps=eps)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`(x - mean) / sqrt(var + eps) · weight + bias` over the last axes.

    Args:
        input: f[…, *normalized_shape].
        normalized_shape: Sizes of the axes that are normalised.
        weight: f[*normalized_shape] or None.
        bias: f[*normalized_shape] or None.
        eps: Added to the variance.

    Raises:
        ShapeError: The last axes of the input are not `normalized_shape`.
    """
    shape = as_tuple(normalized_shape)
    _check_last("layer_norm", input, shape, weight=weight, bias=bias)
    need_floating("layer_norm", input)
    return norm.layer_norm_op(input, weight, bias, shape=shape, eps=eps)


def _check_last(name: str, x: Tensor, shape: tuple[int, ...], **affine: Tensor | None) -> None:
    need_tensor(name, "the input", x)
    if not shape or tuple(x.shape[-len(shape) :]) != shape:
        raise ShapeError(
            f"{name}: the last axes of the input must be {shape}. Got {describe(x)}. "
            "Set normalized_shape to the sizes of the axes that are normalised."
        )
    for key, t in affine.items():
        if t is not None and tuple(t.shape) != shape:
            raise ShapeError(f"{name}: {key} must have the shape {shape}. Got {describe(t)}.")


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """`x / sqrt(mean x² + eps) · weight` over the last axes.

    Args:
        input: x, f[…, *normalized_shape].
        normalized_shape: The last axes.
        weight: f[*normalized_shape], or None.
        eps: Added to the mean; default the dtype's.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """
    shape = as_tuple(normalized_shape)
    _check_last("rms_norm", input, shape, weight=weight)
    eps = finfo(input.dtype).eps if eps is None else eps
    return norm.rms_norm_op(input, weight, shape=shape, eps=eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """`layer_norm` over groups of channels of each sample, with a weight for each channel.

    Args:
        input: f[N, C, …].
        num_groups: Divides C.
        weight, bias: f[C], or None.
        eps: Added to the variance.

    Raises:
        ShapeError: The groups do not divide the channels.
        ArgumentError: There is one value only in each group of the whole batch.
    """
    need_tensor("group_norm", "the input", input)
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: num_groups must divide the channels (axis 1). "
            f"Got {num_groups} groups for {describe(input)}."
        )
    _check_channels("group_norm", input, None, None, weight, bias)
    shape = tuple(input.shape)
    if math.prod(shape) == num_groups:
        raise ArgumentError(
            f"group_norm: a group needs more than 1 value. Got {num_groups} groups for "
            f"{describe(input)}. Use fewer groups."
        )
    return norm.group_norm_op(input, weight, bias, groups=num_groups, eps=eps)


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """`x / max(‖x‖_p, eps)` along `dim`, written to `out` if that is given.

    Args:
        input: x, f[…].
        p: Order of the norm.
        dim: Axis or axes of a vector.
        eps: Least divisor.
        out: A tensor of the same shape, or None.
    """
    x = full_float(input)
    y = (x / elementwise.clamp_min(x.norm(p, dim, keepdim=True), eps)).to(input.dtype)
    return y if out is None else out.copy_(y)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """`x1·x2 / (max(‖x1‖, eps) · max(‖x2‖, eps))` along `dim`."""
    need_one_float("cosine_similarity", x1, x2)
    dtype, x1, x2 = x1.dtype, full_float(x1), full_float(x2)
    x1, x2 = broadcast_tensors(x1, x2)
    norms = [elementwise.clamp_min(x.norm(2, dim, keepdim=True), eps) for x in (x1, x2)]
    return ((x1 / norms[0]) * (x2 / norms[1])).sum(dim).to(dtype)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`x / (k + alpha · mean x²)^beta`, the mean over `size` neighbouring channels, 0 beyond.

    Args:
        input: f[N, C, …] with at least 3 axes.
        size: Number of channels; one more before the channel than after it if it is even.
        alpha: Factor of the mean.
        beta: Exponent.
        k: Added to the mean.

    Raises:
        ShapeError: Fewer than 3 axes.

    Source: Krizhevsky et al., ImageNet Classification with Deep CNNs, 2012.
    """
    need_tensor("local_response_norm", "the input", input)
    if input.ndim < 3:
        raise ShapeError(
            f"local_response_norm: the input must be [N, C, …] with at least 3 axes. "
            f"Got {describe(input)}."
        )
    if not input.numel():
        return input
    weights = neighbours(input.shape[1], size // 2, (size - 1) // 2, 1 / size)
    return input / (across_channels(input * input, weights) * alpha + k) ** beta


def across_channels(x: Tensor, weights: Weights) -> Tensor:
    """Weighted sums over the channels of f[N, C, …]."""
    flat = x.reshape(x.shape[0], x.shape[1], -1)
    return resample(flat, weights=(weights, None)).reshape(x.shape)


@functools.lru_cache(64)
def neighbours(channels: int, before: int, after: int, weight: float) -> Weights:
    """The matrix that sums `before` channels, the channel itself and `after` more."""
    ranges = [(max(0, i - before), min(channels, i + after + 1)) for i in range(channels)]
    return Weights.of_ranges(ranges, [weight] * channels, channels)
