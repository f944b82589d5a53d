"""Images at another size: each axis by one matrix of weights."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError
from .base import rounded


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: np.ndarray) -> np.ndarray:
    """Keys' kernel with a = -1/2."""
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


_KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bilinear": _triangle,
    "bicubic": _cubic,
}
INTERPOLATIONS = ("nearest", *_KERNELS)


def checked_interpolation(name: str, interpolation: str) -> str:
    """`interpolation`, which must be one of INTERPOLATIONS (an enum's value counts, too)."""
    mode = getattr(interpolation, "value", interpolation)
    if mode not in INTERPOLATIONS:
        raise ArgumentError(
            f"{name}: interpolation must be one of {', '.join(INTERPOLATIONS)}. Got "
            f"{interpolation!r}."
        )
    return mode


def resized(pixels_CHW: np.ndarray, size: tuple[int, int], interpolation: str) -> np.ndarray:
    """The image at another size; smaller ones are averaged over all pixels (antialias).

    Args:
        pixels_CHW: the image.
        size: height and width of the result.
        interpolation: one of INTERPOLATIONS; "nearest" takes the pixel at the centre.

    Source: R. Keys, Cubic convolution interpolation for digital image processing, 1981.
    """
    rows, columns = pixels_CHW.shape[1:]
    if size == (rows, columns):
        return pixels_CHW
    if interpolation == "nearest":
        places = [
            np.minimum((np.arange(out) + 0.5) * (n / out), n - 1).astype(np.int64)
            for n, out in zip((rows, columns), size, strict=True)
        ]
        return pixels_CHW[:, places[0][:, None], places[1]]
    dtype = np.float64 if pixels_CHW.dtype == np.float64 else np.float32
    down: Any = _weights(rows, size[0], interpolation).astype(dtype)
    across: Any = _weights(columns, size[1], interpolation).astype(dtype)
    # Whole numbers stay such between the two axes, as in Pillow.
    values: Any = pixels_CHW.astype(dtype)
    wide: Any = rounded(values @ across.T, pixels_CHW.dtype).astype(dtype)
    return rounded(down @ wide, pixels_CHW.dtype)


@functools.lru_cache(maxsize=128)
def _weights(n: int, out: int, kind: str) -> np.ndarray:
    """(out, n): how much each pixel counts; rows sum to 1."""
    scale = n / out
    centres = (np.arange(out)[:, None] + 0.5) * scale
    weights = _KERNELS[kind]((np.arange(n) + 0.5 - centres) / max(scale, 1.0))
    weights /= weights.sum(1, keepdims=True)
    weights.flags.writeable = False
    return weights
