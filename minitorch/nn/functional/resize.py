"""Resizing under PyTorch's names: for each axis a constant matrix, which `resample` applies."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops.resample import Weights, resample
from ...tensor import Tensor
from .checks import need_tensor
from .pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

_LINEAR = {"linear": 1, "bilinear": 2, "trilinear": 3}
_AXES = {**_LINEAR, "bicubic": 2}
MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area")


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes series, images or volumes.

    Args:
        input: f[N, C, …] with one, two or three axes behind the channels.
        size: The new size of these axes.
        scale_factor: Or the factors by which they grow.
        mode: "nearest" (any axes), "nearest-exact", "linear" (1), "bilinear" and "bicubic" (2),
            "trilinear" (3) or "area" (any; averages).
        align_corners: For the linear and cubic modes: whether the centres of the first and last
            elements (True) or their outer borders (False, the default) stay in place.
        recompute_scale_factor: Use the ratio of the sizes instead of the factor that was given.
        antialias: For "bilinear" and "bicubic": widen the filter where the image shrinks.

    Returns:
        f[N, C, …] of the new size.

    Raises:
        ArgumentError: Unknown mode, options that do not belong to it, or not exactly one of size
            and scale_factor.
        ShapeError: The number of axes does not fit the mode, or an axis is or would be empty.

    Source: Keys, Cubic Convolution Interpolation for Digital Image Processing, 1981 (bicubic).
    """
    need_tensor("interpolate", "the input", input)
    axes = input.ndim - 2
    _check_mode(input, mode, align_corners, antialias)
    sizes, factors = _target(input, size, scale_factor, recompute_scale_factor)
    if not all(input.shape[1:]) or not all(n > 0 for n in sizes):
        raise ShapeError(
            f"interpolate: only the batch may be empty. Got {describe(input)} for the size {sizes}."
        )
    if mode == "area":
        pool = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[axes - 1]
        return pool(input, sizes)
    if not (input.dtype.is_floating_point or input.dtype.name == "uint8"):
        raise DtypeError(
            f"interpolate: the input must be floating. Got {describe(input)}. Use .float()."
        )
    if input.dtype.name == "uint8" and mode not in ("nearest", "nearest-exact"):
        raise DtypeError(
            f"interpolate: whole numbers can only be resized by 'nearest'. Got {describe(input)} "
            f"and {mode!r}. Use .float() and round the result."
        )
    corners = bool(align_corners)
    weights = tuple(
        None if n == m and factor in (None, 1) else _axis(mode, n, m, factor, corners, antialias)
        for n, m, factor in zip(input.shape[2:], sizes, factors, strict=True)
    )
    return resample(input, weights=weights)


def _check_mode(x: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in MODES:
        raise ArgumentError(f"interpolate: mode must be one of {MODES}. Got {mode!r}.")
    if not 3 <= x.ndim <= 5 or _AXES.get(mode, x.ndim - 2) != x.ndim - 2:
        wanted = _AXES.get(mode)
        rule = "3, 4 or 5 axes" if wanted is None else f"{wanted + 2} axes"
        raise ShapeError(
            f"interpolate: the input must have {rule} [N, C, …] for mode {mode!r}. "
            f"Got {describe(x)}. Use unsqueeze(0) if the batch is missing."
        )
    if align_corners is not None and mode not in _AXES:
        raise ArgumentError(
            f"interpolate: align_corners belongs to the modes {tuple(_AXES)}. Got mode {mode!r}."
        )
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(
            f"interpolate: antialias belongs to the modes 'bilinear' and 'bicubic'. Got {mode!r}."
        )


def _target(
    x: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """The new sizes, and the factors that positions are computed with (None: ratio of sizes)."""
    axes = x.ndim - 2
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            "interpolate: exactly one of size and scale_factor must be given. "
            f"Got size={size} and scale_factor={scale_factor}."
        )
    if size is not None:
        if recompute:
            raise ArgumentError(
                f"interpolate: recompute_scale_factor belongs to scale_factor. Got size={size}."
            )
        sizes = _several("size", size, axes)
        if not all(isinstance(n, int) for n in sizes):
            raise TypeError(f"interpolate: size must be whole numbers. Got {size!r}.")
        return sizes, (None,) * axes
    factors = _several("scale_factor", scale_factor, axes)
    sizes = tuple(math.floor(n * float(f)) for n, f in zip(x.shape[2:], factors, strict=True))
    return sizes, (None,) * axes if recompute else factors


def _several(what: str, value: Any, axes: int) -> tuple[Any, ...]:
    values = tuple(value) if isinstance(value, tuple | list) else (value,) * axes
    if len(values) != axes:
        raise ArgumentError(
            f"interpolate: {what} must be a number or {axes} of them. Got {value!r}."
        )
    return values


@functools.lru_cache(256)
def _axis(
    mode: str, size: int, outputs: int, factor: float | None, corners: bool, antialias: bool
) -> Weights:
    """The matrix of one axis."""
    if mode in ("nearest", "nearest-exact"):
        places = _nearest(mode, size, outputs, factor)
        return Weights(np.arange(outputs), places, np.ones(outputs), (outputs, size))
    kernel, support = (_cubic, 2) if mode == "bicubic" else (_triangle, 1)
    if corners:
        step = (size - 1) / (outputs - 1) if outputs > 1 else 0.0
    else:
        step = 1 / factor if factor else size / outputs
    if antialias:
        matrix = _antialiased(kernel, support, size, outputs, step)
        rows, columns = matrix.nonzero()
        return Weights(rows, columns, matrix[rows, columns], (outputs, size))
    i = np.arange(outputs)
    places = i * step if corners else (i + 0.5) * step - 0.5
    if mode != "bicubic":
        places = places.clip(0)
    at = np.floor(places).astype(np.int64) + np.arange(1 - support, 1 + support)[:, None]
    values = kernel(places - at, -0.75)
    rows = np.broadcast_to(i, at.shape)
    used = values != 0
    return Weights(rows[used], at.clip(0, size - 1)[used], values[used], (outputs, size))


def _nearest(mode: str, size: int, outputs: int, factor: float | None) -> np.ndarray:
    """Which element each output takes; in float32, since PyTorch computes it so."""
    i = np.arange(outputs)
    if mode == "nearest" and outputs in (size, 2 * size):
        return i // (outputs // size)
    step = np.float32(1 / factor) if factor else np.float32(size) / np.float32(outputs)
    shift = np.float32(0.5 if mode == "nearest-exact" else 0)
    return np.floor((i.astype(np.float32) + shift) * step).astype(np.int64).clip(0, size - 1)


def _triangle(x: np.ndarray, a: float) -> np.ndarray:
    return np.maximum(0, 1 - np.abs(x))


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """Keys' kernel, which is 1 at 0 and 0 at the other whole numbers."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _antialiased(
    kernel: Callable[[np.ndarray, float], np.ndarray],
    support: int,
    size: int,
    outputs: int,
    step: float,
) -> np.ndarray:
    """Filters that are as wide as the step between outputs, and sum to 1 at the borders too."""
    width = support * max(step, 1.0)
    centre = step * (np.arange(outputs) + 0.5)
    low = np.maximum(np.trunc(centre - width + 0.5), 0)[:, None]
    high = np.minimum(np.trunc(centre + width + 0.5), size)[:, None]
    places = np.arange(size)
    matrix = kernel((places + 0.5 - centre[:, None]) / max(step, 1.0), -0.5)
    matrix = np.where((places >= low) & (places < high), matrix, 0)
    total = matrix.sum(1, keepdims=True)
    return matrix / np.where(total == 0, 1, total)


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The older name of `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` by repeating the nearest element."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` of images by "bilinear" with align_corners."""
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)
