"""Changes of colour, and erased parts."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DataError, describe
from .base import Transform, checked_chance, rounded

_GREY = np.array([0.2989, 0.587, 0.114], np.float32)[:, None, None]
_ATTEMPTS = 10
_Range = float | Sequence[float]


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue changed by random factors, in random order.

    Floating images are taken to be in [0, 1].

    Args:
        brightness: the factor is drawn from [max(0, 1 - b), 1 + b], or from (least, greatest).
        contrast: likewise; the image is mixed with the mean of its grey version.
        saturation: likewise; the image is mixed with its grey version.
        hue: the shift is drawn from [-h, h], h ≤ 0.5 of the colour circle, or from a pair.
    """

    wants_rng = True

    def __init__(
        self,
        brightness: _Range = 0,
        contrast: _Range = 0,
        saturation: _Range = 0,
        hue: _Range = 0,
    ) -> None:
        self.brightness = _factors("brightness", brightness)
        self.contrast = _factors("contrast", contrast)
        self.saturation = _factors("saturation", saturation)
        self.hue = _factors("hue", hue, centre=0.0, least=-0.5, greatest=0.5)

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        dtype = pixels_CHW.dtype
        white = 255.0 if dtype == np.uint8 else 1.0
        values: Any = pixels_CHW.astype(np.float64 if dtype == np.float64 else np.float32)
        pixels = values / white
        drawn = [rng.uniform(*self.brightness), rng.uniform(*self.contrast)]
        drawn += [rng.uniform(*self.saturation), rng.uniform(*self.hue)]
        for which in rng.permutation(4):
            pixels = self._changed(pixels, int(which), drawn[which])
        return rounded(pixels * white, dtype)

    def _changed(self, pixels: np.ndarray, which: int, amount: float) -> np.ndarray:
        if amount == (0.0 if which == 3 else 1.0):
            return pixels
        if which == 0:
            return np.clip(pixels * amount, 0, 1)
        if which == 1:
            return np.clip(pixels * amount + grey(pixels).mean() * (1 - amount), 0, 1)
        if len(pixels) == 1:
            return pixels
        if which == 2:
            return np.clip(pixels * amount + grey(pixels) * (1 - amount), 0, 1)
        return turned_hue(pixels, amount)


def grey(pixels_CHW: np.ndarray) -> np.ndarray:
    """The luminance (1, H, W) of an image of one or three channels."""
    if len(pixels_CHW) == 1:
        return pixels_CHW
    if len(pixels_CHW) != 3:
        raise DataError(
            f"ColorJitter: an image needs one or three channels. Got {describe(pixels_CHW)}."
        )
    return (pixels_CHW * _GREY.astype(pixels_CHW.dtype)).sum(0, keepdims=True)


def turned_hue(pixels_CHW: np.ndarray, shift: float) -> np.ndarray:
    """RGB in [0, 1] with its hue moved by `shift` of the colour circle."""
    red, green, blue = pixels_CHW
    high, low = pixels_CHW.max(0), pixels_CHW.min(0)
    spread = high - low
    safe = np.where(spread == 0, 1, spread)
    rc, gc, bc = ((high - part) / safe for part in (red, green, blue))
    hue = np.where(high == red, bc - gc, np.where(high == green, 2 + rc - bc, 4 + gc - rc)) / 6
    hue = np.where(spread == 0, 0, hue) + shift
    saturation = spread / np.where(high == 0, 1, high)
    # Each channel is high - spread * clip(distance from its hue): the circle has six sectors.
    sectors = np.stack([hue * 6 + offset for offset in (5.0, 3.0, 1.0)]) % 6
    fall = np.clip(np.minimum(sectors, 4 - sectors), 0, 1)
    return (high * (1 - saturation * fall)).astype(pixels_CHW.dtype)


class RandomErasing(Transform):
    """A random rectangle overwritten with probability `p`.

    Args:
        p: how often.
        scale: least and greatest share of the area.
        ratio: least and greatest height / width.
        value: a number, a number for each channel, or "random" for normal noise.
        inplace: accepted; the image itself is left alone.

    Source: Z. Zhong, L. Zheng, G. Kang, S. Li and Y. Yang, Random Erasing Data Augmentation,
    AAAI 2020.
    """

    wants_rng = True

    def __init__(
        self,
        p: float = 0.5,
        scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ) -> None:
        self.p = checked_chance("RandomErasing", p)
        if not 0 <= scale[0] <= scale[1] <= 1 or not 0 < ratio[0] <= ratio[1]:
            raise ArgumentError(
                "RandomErasing: scale must be (least, greatest) in [0, 1], ratio the same above 0. "
                f"Got {scale} and {ratio}."
            )
        if isinstance(value, str) and value != "random":
            raise ArgumentError(f"RandomErasing: value must be numbers or 'random'. Got {value!r}.")
        self.scale, self.ratio, self.value = scale, ratio, value

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        if rng.random() >= self.p:
            return pixels_CHW
        channels, rows, columns = pixels_CHW.shape
        logs = [math.log(bound) for bound in self.ratio]
        for _ in range(_ATTEMPTS):
            area = rows * columns * rng.uniform(*self.scale)
            proportion = math.exp(rng.uniform(*logs))
            height = round(math.sqrt(area * proportion))
            width = round(math.sqrt(area / proportion))
            if height >= rows or width >= columns:
                continue
            top = int(rng.integers(rows - height + 1))
            left = int(rng.integers(columns - width + 1))
            erased = pixels_CHW.copy()
            shape = (channels, height, width)
            noise = isinstance(self.value, str)
            new = rng.standard_normal(shape) if noise else np.reshape(self.value, (-1, 1, 1))
            erased[:, top : top + height, left : left + width] = new
            return erased
        return pixels_CHW


def _factors(
    name: str,
    given: _Range,
    *,
    centre: float = 1.0,
    least: float = 0.0,
    greatest: float = math.inf,
) -> tuple[float, float]:
    if isinstance(given, int | float):
        low, high = max(centre - given, least) if centre else -given, centre + given
    else:
        low, high = given
    if not least <= low <= high <= greatest:
        raise ArgumentError(
            f"ColorJitter: {name} must be a number ≥ 0 or (least, greatest) within "
            f"[{least:g}, {greatest:g}]. Got {given!r}."
        )
    return float(low), float(high)
