"""Crops and sizes."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DataError, describe
from .base import Transform
from .resampling import checked_interpolation, resized

_PADDINGS = {"constant": "constant", "edge": "edge", "reflect": "reflect", "symmetric": "symmetric"}
_ATTEMPTS = 10


class Resize(Transform):
    """The whole image at another size.

    Args:
        size: (height, width), or the length of the shorter side, which keeps the proportions.
        interpolation: "bilinear", "bicubic" or "nearest".
        antialias: accepted if true: smaller images are always averaged.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        interpolation: str = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        pair = checked_size("Resize", size)
        self.size = pair[0] if isinstance(size, int) else pair
        self.interpolation = checked_interpolation("Resize", interpolation)
        if antialias is False:
            raise ArgumentError("Resize: antialias must be true: smaller images are averaged.")

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        rows, columns = pixels_CHW.shape[1:]
        size = self.size
        if isinstance(size, int):
            short, long = min(rows, columns), max(rows, columns)
            other = int(size * long / short)
            size = (size, other) if rows <= columns else (other, size)
        return resized(pixels_CHW, size, self.interpolation)


class CenterCrop(Transform):
    """The middle of the image; smaller images get a black border.

    Args:
        size: (height, width), or the side of a square.
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = checked_size("CenterCrop", size)

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        height, width = self.size
        rows, columns = pixels_CHW.shape[1:]
        if rows < height or columns < width:
            lacks = [max(0, height - rows), max(0, width - columns)]
            border = [(lack // 2, (lack + 1) // 2) for lack in lacks]
            pixels_CHW = np.pad(pixels_CHW, [(0, 0), *border])
            rows, columns = pixels_CHW.shape[1:]
        top, left = round((rows - height) / 2), round((columns - width) / 2)
        return pixels_CHW[:, top : top + height, left : left + width]


class RandomCrop(Transform):
    """A part of the image at a random place.

    Args:
        size: (height, width), or the side of a square.
        padding: border that is added first: one number, (left/right, top/bottom), or
            (left, top, right, bottom).
        pad_if_needed: add a border where the image is too small.
        fill: value of a constant border.
        padding_mode: "constant", "edge", "reflect" or "symmetric".

    Raises:
        DataError: the image with its border is smaller than `size`.
    """

    wants_rng = True

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill: float = 0,
        padding_mode: str = "constant",
    ) -> None:
        self.size = checked_size("RandomCrop", size)
        self.padding = _border(padding)
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        if padding_mode not in _PADDINGS:
            raise ArgumentError(
                f"RandomCrop: padding_mode must be one of {', '.join(_PADDINGS)}. Got "
                f"{padding_mode!r}."
            )
        self.padding_mode = padding_mode

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        height, width = self.size
        left, top, right, bottom = self.padding
        pixels = self._pad(pixels_CHW, (top, bottom), (left, right))
        if self.pad_if_needed:
            lacks = [max(0, height - pixels.shape[1]), max(0, width - pixels.shape[2])]
            pixels = self._pad(pixels, *[(lack, lack) for lack in lacks])
        rows, columns = pixels.shape[1:]
        if rows < height or columns < width:
            raise DataError(
                f"RandomCrop: the image must be at least as large as size={self.size}. Got "
                f"{describe(pixels_CHW)} (C, H, W). Use pad_if_needed=True or padding."
            )
        first = int(rng.integers(rows - height + 1))
        second = int(rng.integers(columns - width + 1))
        return pixels[:, first : first + height, second : second + width]

    def _pad(self, pixels: np.ndarray, *border: tuple[int, int]) -> np.ndarray:
        if not np.any(border):
            return pixels
        options = {"constant_values": self.fill} if self.padding_mode == "constant" else {}
        return np.pad(pixels, [(0, 0), *border], self.padding_mode, **options)  # type: ignore[call-overload]


class RandomResizedCrop(Transform):
    """A part of random size and proportions at a random place, resized.

    Args:
        size: (height, width), or the side of a square.
        scale: least and greatest share of the area.
        ratio: least and greatest width / height.
        interpolation: "bilinear", "bicubic" or "nearest".
        antialias: accepted if true: smaller images are always averaged.

    Source: C. Szegedy et al., Going Deeper with Convolutions, CVPR 2015.
    """

    wants_rng = True

    def __init__(
        self,
        size: int | Sequence[int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: str = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        self.size = checked_size("RandomResizedCrop", size)
        for name, (low, high) in {"scale": scale, "ratio": ratio}.items():
            if not 0 < low <= high:
                raise ArgumentError(
                    f"RandomResizedCrop: {name} must be (least, greatest), both > 0. Got "
                    f"{(low, high)}."
                )
        self.scale, self.ratio = scale, ratio
        self.interpolation = checked_interpolation("RandomResizedCrop", interpolation)
        if antialias is False:
            raise ArgumentError("RandomResizedCrop: antialias must be true: it always averages.")

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        rows, columns = pixels_CHW.shape[1:]
        top, left, height, width = self._place(rows, columns, rng)
        part = pixels_CHW[:, top : top + height, left : left + width]
        return resized(part, self.size, self.interpolation)

    def _place(self, rows: int, columns: int, rng: Any) -> tuple[int, int, int, int]:
        logs = [math.log(bound) for bound in self.ratio]
        for _ in range(_ATTEMPTS):
            area = rows * columns * rng.uniform(*self.scale)
            proportion = math.exp(rng.uniform(*logs))
            width = round(math.sqrt(area * proportion))
            height = round(math.sqrt(area / proportion))
            if 0 < width <= columns and 0 < height <= rows:
                top = int(rng.integers(rows - height + 1))
                return top, int(rng.integers(columns - width + 1)), height, width
        height, width = rows, columns
        if columns / rows < self.ratio[0]:
            height = round(columns / self.ratio[0])
        elif columns / rows > self.ratio[1]:
            width = round(rows * self.ratio[1])
        return (rows - height) // 2, (columns - width) // 2, height, width


def checked_size(name: str, size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width from one number or two."""
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) == 1:
        pair = (pair[0], pair[0])
    if len(pair) != 2 or not all([type(n) is int and n > 0 for n in pair]):
        raise ArgumentError(f"{name}: size must be one or two whole numbers > 0. Got {size!r}.")
    return pair[0], pair[1]


def _border(padding: int | Sequence[int] | None) -> tuple[int, int, int, int]:
    parts = (padding,) if isinstance(padding, int) else tuple(padding or (0,))
    if len(parts) not in (1, 2, 4):
        raise ArgumentError(
            f"RandomCrop: padding must be one, two or four numbers. Got {padding!r}."
        )
    left, top, right, bottom = (*parts,) * (4 // len(parts))
    return left, top, right, bottom
