"""Sampling at given places, and rearrangements of pixels and channels, under PyTorch's names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import elementwise, joining
from ...ops.creation import arange, linspace, ones
from ...ops.sampled import take_flat
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
    _check_grid(input, grid, mode, padding_mode)
    corners, sizes = bool(align_corners), tuple(input.shape[2:])
    # The last number of a place belongs to the first axis.
    places = [_unnormalised(grid[..., len(sizes) - 1 - i], n, corners) for i, n in enumerate(sizes)]
    if mode != "bicubic":
        places = [_inside(p, n, padding_mode, corners) for p, n in zip(places, sizes, strict=True)]
    if mode == "nearest":
        taps = [_nearest_taps(p) for p in places]
    elif mode == "bilinear":
        taps = [_linear_taps(p) for p in places]
    else:
        taps = [
            [(_inside(at, n, padding_mode, corners), w) for at, w in _cubic_taps(p)]
            for p, n in zip(places, sizes, strict=True)
        ]
    total: Any = None
    for corner in itertools.product(*taps):
        part = _at_corner(input, [at for at, _ in corner], [w for _, w in corner])
        total = part if total is None else total + part
    return total


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


def _unnormalised(place: Tensor, size: int, corners: bool) -> Tensor:
    """From -1…1 to positions of elements."""
    if corners:
        return (place + 1) * ((size - 1) / 2)
    return ((place + 1) * size - 1) / 2


def _inside(place: Tensor, size: int, padding_mode: str, corners: bool) -> Tensor:
    """Places outside moved to where their values are; gradients stop at the borders."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        place = _reflected(place, low, high)
    place = elementwise.where(place > 0, place, 0.0)
    return elementwise.where(place < size - 1, place, float(size - 1))


def _reflected(place: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span <= 0:
        return place * 0
    away = place - low
    away = elementwise.where(away < 0, -away, away)
    flips = (away.detach() / span).floor()
    rest = away - flips * span
    return elementwise.where(elementwise.remainder(flips, 2) == 0, rest + low, high - rest)


def _nearest_taps(place: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The nearest element with weight 1, whose gradient is 0 everywhere."""
    at = place.detach().round()
    return [(at, elementwise.where(at != at.floor(), place, 1.0))]


def _linear_taps(place: Tensor) -> list[tuple[Tensor, Tensor]]:
    start = place.detach().floor()
    share = place - start
    return [(start, 1 - share), (start + 1, share)]


def _cubic_taps(place: Tensor) -> list[tuple[Tensor, Tensor]]:
    start, a = place.detach().floor(), -0.75
    t = place - start
    u = 1 - t
    return [
        (start - 1, a * (((t + 1 - 5) * (t + 1) + 8) * (t + 1) - 4)),
        (start, ((a + 2) * t - (a + 3)) * t * t + 1),
        (start + 1, ((a + 2) * u - (a + 3)) * u * u + 1),
        (start + 2, a * (((u + 1 - 5) * (u + 1) + 8) * (u + 1) - 4)),
    ]


def _at_corner(x: Tensor, places: list[Tensor], weights: list[Tensor]) -> Tensor:
    """The elements at whole places times their weights; 0 for places outside."""
    n, c, *sizes = x.shape
    inside: Any = None
    flat: Any = 0
    for at, size in zip(places, sizes, strict=True):
        within = (at >= 0) & (at <= size - 1)
        inside = within if inside is None else inside & within
        flat = flat * size + elementwise.where(within, at, 0.0).long()
    area = math.prod(sizes)
    planes = (arange(n * c, device=x.device) * area).reshape(n, c, *[1] * len(sizes))
    values = take_flat(x, planes + flat.unsqueeze(1))
    weight = elementwise.where(inside, weights[0], 0.0)
    for w in weights[1:]:
        weight = weight * w
    return values * weight.unsqueeze(1)


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
