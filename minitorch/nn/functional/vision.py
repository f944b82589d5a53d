"""Sampling at given places, and rearrangements of pixels and channels, under PyTorch's names."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import joining
from ...ops.autocasting import full
from ...ops.creation import linspace, ones
from ...ops.grid_sampling import grid_sample_op
from ...tensor import Tensor
from .checks import need_tensor


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Values of images or volumes at the places that `grid` names.

    Args:
        input: f[N, C, H, W] or f[N, C, D, H, W].
        grid: f[N, H_out, W_out, 2] with (x, y), or f[N, D_out, H_out, W_out, 3] with (x, y, z);
            -1 and 1 are the ends of the axes.
        mode: "bilinear" (trilinear for volumes), "nearest" or "bicubic" (images).
        padding_mode: What lies outside: "zeros", "border" (the nearest element) or "reflection".
        align_corners: Whether the ends are the centres of the outermost elements (True) or their
            outer borders (False, the default).

    Returns:
        f[N, C, H_out, W_out] or f[N, C, D_out, H_out, W_out].

    Raises:
        ArgumentError: Unknown modes.
        ShapeError: Shapes that do not fit.
        DtypeError: The two do not have one floating dtype.

    Source: Jaderberg et al., Spatial Transformer Networks, 2015.
    """
    input, grid = full(input), full(grid)
    _check_grid(input, grid, mode, padding_mode)
    dtype = input.dtype
    if dtype.itemsize < 4:  # half types are too coarse for places
        input, grid = input.float(), grid.float()
    y: Tensor = grid_sample_op(
        input, grid, mode=mode, padding_mode=padding_mode, corners=bool(align_corners)
    )
    return y.to(dtype)


def _check_grid(x: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    need_tensor("grid_sample", "the input", x)
    need_tensor("grid_sample", "the grid", grid)
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ArgumentError(
            f"grid_sample: mode must be 'bilinear', 'nearest' or 'bicubic'. Got {mode!r}."
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ArgumentError(
            "grid_sample: padding_mode must be 'zeros', 'border' or 'reflection'. "
            f"Got {padding_mode!r}."
        )
    axes = x.ndim - 2
    fits = grid.ndim == x.ndim and grid.shape[0] == x.shape[0] and grid.shape[-1] == axes
    if axes not in (2, 3) or not fits or not all(x.shape[2:]):
        raise ShapeError(
            "grid_sample: the input must be [N, C, H, W] for a grid [N, H_out, W_out, 2], or "
            "[N, C, D, H, W] for a grid [N, D_out, H_out, W_out, 3]. "
            f"Got {describe(x)} and {describe(grid)}."
        )
    if mode == "bicubic" and axes != 2:
        raise ShapeError(f"grid_sample: 'bicubic' is for images [N, C, H, W]. Got {describe(x)}.")
    if x.dtype is not grid.dtype or not x.dtype.is_floating_point:
        raise DtypeError(
            "grid_sample: the input and the grid must have one floating dtype. "
            f"Got {describe(x)} and {describe(grid)}. Use grid.to(input.dtype)."
        )


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` of an affine map.

    Args:
        theta: f[N, 2, 3] for images or f[N, 3, 4] for volumes.
        size: The size of the output, (N, C, H, W) or (N, C, D, H, W).
        align_corners: As in `grid_sample`.

    Returns:
        f[N, H, W, 2] or f[N, D, H, W, 3].

    Raises:
        DtypeError: `theta` is not floating.
        ShapeError: The matrices or the size have the wrong form.
    """
    need_tensor("affine_grid", "theta", theta)
    if not theta.dtype.is_floating_point:
        raise DtypeError(f"affine_grid: theta must be floating. Got {describe(theta)}.")
    n, *sizes = (size[0], *size[2:])
    axes = len(size) - 2
    if axes not in (2, 3) or tuple(theta.shape) != (n, axes, axes + 1) or min(size) < 1:
        raise ShapeError(
            "affine_grid: theta must be [N, 2, 3] for a size (N, C, H, W), or [N, 3, 4] for "
            f"(N, C, D, H, W). Got {describe(theta)} and {tuple(size)}."
        )
    columns = []
    for i in reversed(range(axes)):
        m = sizes[i]
        line = linspace(-1, 1, m, dtype=theta.dtype, device=theta.device)
        if m == 1:
            line = line * 0
        elif not align_corners:
            line = line * ((m - 1) / m)
        shape = [1] * axes
        shape[i] = m
        columns.append(line.reshape(shape).expand(sizes))
    columns.append(ones(*sizes, dtype=theta.dtype, device=theta.device))
    points = joining.stack(columns, -1).reshape(1, math.prod(sizes), axes + 1)
    return (points @ theta.transpose(1, 2)).reshape(n, *sizes, axes)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become pixels: […, C·r², H, W] to […, C, H·r, W·r].

    Raises:
        ShapeError: Fewer than 3 axes, or channels that r² does not divide.

    Source: Shi et al., Efficient Sub-Pixel Convolution, 2016.
    """
    need_tensor("pixel_shuffle", "the input", input)
    r = _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    if input.ndim < 3 or input.shape[-3] % (r * r):
        raise ShapeError(
            f"pixel_shuffle: the channels (axis -3) must be a multiple of {r * r}. "
            f"Got {describe(input)}."
        )
    *lead, c, h, w = input.shape
    k = len(lead)
    x = input.reshape(*lead, c // (r * r), r, r, h, w)
    x = x.permute(*range(k), k, k + 3, k + 1, k + 4, k + 2)
    return x.reshape(*lead, c // (r * r), h * r, w * r)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels become channels: […, C, H·r, W·r] to […, C·r², H, W]; undoes `pixel_shuffle`.

    Raises:
        ShapeError: Fewer than 3 axes, or a height or width that r does not divide.
    """
    need_tensor("pixel_unshuffle", "the input", input)
    r = _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    if input.ndim < 3 or input.shape[-2] % r or input.shape[-1] % r:
        raise ShapeError(
            f"pixel_unshuffle: height and width must be multiples of {r}. Got {describe(input)}."
        )
    *lead, c, h, w = input.shape
    k = len(lead)
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    x = x.permute(*range(k), k, k + 2, k + 4, k + 1, k + 3)
    return x.reshape(*lead, c * r * r, h // r, w // r)


def _factor(name: str, what: str, value: int) -> int:
    if not isinstance(value, int) or value < 1:
        raise ArgumentError(f"{name}: {what} must be a whole number of at least 1. Got {value!r}.")
    return value


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Mixes the channels of f[N, C, …]: element i of each group, one group after the other.

    Raises:
        ShapeError: Fewer than 3 axes, or groups that do not divide the channels.

    Source: Zhang et al., ShuffleNet, 2018.
    """
    need_tensor("channel_shuffle", "the input", input)
    _factor("channel_shuffle", "groups", groups)
    if input.ndim < 3 or input.shape[1] % groups:
        raise ShapeError(
            f"channel_shuffle: groups must divide the channels (axis 1 of at least 3). "
            f"Got {groups} for {describe(input)}."
        )
    n, c, *rest = input.shape
    mixed = input.reshape(n, groups, c // groups, *rest).transpose(1, 2)
    return mixed.reshape(n, c, *rest)


native_channel_shuffle = channel_shuffle
