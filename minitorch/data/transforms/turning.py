"""Flips and rotations."""

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError
from .base import Transform, checked_chance, rounded


class RandomHorizontalFlip(Transform):
    """Left and right exchanged with probability `p`."""

    wants_rng = True

    def __init__(self, p: float = 0.5) -> None:
        self.p = checked_chance("RandomHorizontalFlip", p)

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        return pixels_CHW[:, :, ::-1] if rng.random() < self.p else pixels_CHW


class RandomVerticalFlip(Transform):
    """Top and bottom exchanged with probability `p`."""

    wants_rng = True

    def __init__(self, p: float = 0.5) -> None:
        self.p = checked_chance("RandomVerticalFlip", p)

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        return pixels_CHW[:, ::-1] if rng.random() < self.p else pixels_CHW


class RandomRotation(Transform):
    """A rotation about the middle by a random angle, at the same size.

    Args:
        degrees: (least, greatest) angle counter-clockwise, or a number d for (-d, d).
        interpolation: "nearest" or "bilinear".
        fill: the value outside of the image.
    """

    wants_rng = True

    def __init__(
        self,
        degrees: float | tuple[float, float],
        interpolation: str = "nearest",
        *,
        fill: float = 0,
    ) -> None:
        if isinstance(degrees, int | float):
            degrees = (-degrees, degrees)
        if len(degrees) != 2 or degrees[0] > degrees[1]:
            raise ArgumentError(
                f"RandomRotation: degrees must be d ≥ 0 or (least, greatest). Got {degrees!r}."
            )
        self.degrees = tuple(degrees)
        self.interpolation = getattr(interpolation, "value", interpolation)
        if self.interpolation not in ("nearest", "bilinear"):
            raise ArgumentError(
                "RandomRotation: interpolation must be 'nearest' or 'bilinear'. Got "
                f"{interpolation!r}."
            )
        self.fill = fill

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        return rotated(
            pixels_CHW, rng.uniform(*self.degrees), self.interpolation == "bilinear", self.fill
        )


def rotated(pixels_CHW: np.ndarray, degrees: float, smooth: bool, fill: float) -> np.ndarray:
    """The image turned counter-clockwise about its middle: each pixel is that at its source."""
    rows, columns = pixels_CHW.shape[1:]
    sine, cosine = math.sin(math.radians(degrees)), math.cos(math.radians(degrees))
    y = (np.arange(rows) - (rows - 1) / 2)[:, None]
    x = np.arange(columns) - (columns - 1) / 2
    # Rounded: a quarter turn would else miss a pixel's edge by 1e-16.
    source_x = np.round(cosine * x - sine * y + (columns - 1) / 2, 6)
    source_y = np.round(sine * x + cosine * y + (rows - 1) / 2, 6)
    if not smooth:
        return _looked_up(pixels_CHW, np.floor(source_y + 0.5), np.floor(source_x + 0.5), fill)
    top, left = np.floor(source_y), np.floor(source_x)
    down, right = source_y - top, source_x - left
    mixed = 0.0
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        share = (down if dy else 1 - down) * (right if dx else 1 - right)
        mixed = mixed + share * _looked_up(pixels_CHW, top + dy, left + dx, fill)
    return rounded(np.asarray(mixed), pixels_CHW.dtype)


def _looked_up(pixels: np.ndarray, y: np.ndarray, x: np.ndarray, fill: float) -> np.ndarray:
    rows, columns = pixels.shape[1:]
    inside = (y >= 0) & (y < rows) & (x >= 0) & (x < columns)
    taken = pixels[:, np.where(inside, y, 0).astype(int), np.where(inside, x, 0).astype(int)]
    return np.where(inside, taken, np.asarray(fill, pixels.dtype))
