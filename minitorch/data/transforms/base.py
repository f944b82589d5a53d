"""What an image is here, and the transforms that only convert or combine.

An image is one of three things, told apart by its type:

- a NumPy array of uint8, (H, W, C) or (H, W), as files are read;
- a NumPy array of floats, (C, H, W), as data sets hand it out;
- a Tensor, (C, H, W), as `ToTensor` makes it.

Each transform gives back what it got; images of Pillow become arrays of uint8. Random transforms
draw from the keyword `rng`, a NumPy generator that the data sets pass on from the DataLoader, so
that a sample depends on (seed, epoch, index) only; without it from the stream "augmentation".
"""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dtypes import get_default_dtype
from ...errors import ArgumentError, DataError, describe
from ...ops.primitive import wrap
from ...random import stream
from ...tensor import Tensor


class Transform:
    """An image to an image of the same kind: define `apply`.

    Attributes:
        wants_rng: whether `apply` draws random numbers.
    """

    wants_rng = False

    def __call__(self, image: Any, *, rng: np.random.Generator | None = None) -> Any:
        if rng is None and self.wants_rng:
            rng = stream("augmentation").numpy()
        pixels, restore = opened(type(self).__name__, image)
        return restore(self.apply(pixels, rng))

    @abstractmethod
    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """The changed pixels, (C, H, W) in the same dtype; `rng` is None unless `wants_rng`."""
        raise NotImplementedError(f"{type(self).__name__} must define apply(self, pixels, rng).")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class Compose:
    """Transforms one after the other; functions of one image are transforms, too.

    Args:
        transforms: called in this order; `rng` goes to those that take it.
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]]) -> None:
        self.transforms = list(transforms)
        self._takes = [takes_rng(transform) for transform in self.transforms]
        self.wants_rng = any(self._takes)

    def __call__(self, image: Any, *, rng: np.random.Generator | None = None) -> Any:
        for transform, takes in zip(self.transforms, self._takes, strict=True):
            image = transform(image, rng=rng) if takes else transform(image)
        return image

    def __repr__(self) -> str:
        lines = "".join(f"\n    {transform!r}" for transform in self.transforms)
        return f"Compose({lines}\n)"


class Lambda:
    """A function as a transform; for worker processes it must be one that can be pickled.

    Args:
        lambd: From an image to an image.
    """

    wants_rng = False

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise ArgumentError(f"Lambda: a function is needed. Got {type(lambd).__name__}.")
        self.lambd = lambd

    def __call__(self, image: Any) -> Any:
        return self.lambd(image)


class ToTensor:
    """An image as a Tensor (C, H, W): uint8 arrays and Pillow's images divided by 255 in the
    default float dtype, floating arrays with their values.
    """

    wants_rng = False

    def __call__(self, image: Any) -> Tensor:
        if isinstance(image, Tensor):
            return image
        pixels, _ = opened("ToTensor", image)
        if pixels.dtype == np.uint8:
            return wrap(np.multiply(pixels, 1 / 255, dtype=get_default_dtype().numpy, order="C"))
        return wrap(np.array(pixels, order="C"))


class Normalize(Transform):
    """`(x - mean) / std` for each channel of a floating image.

    Args:
        mean: a number for each channel, or one.
        std: likewise, not 0.
        inplace: accepted; the image itself is left alone.
    """

    def __init__(self, mean: Any, std: Any, inplace: bool = False) -> None:
        self.mean, self.std = (np.asarray(values, np.float64).tolist() for values in (mean, std))
        if not np.all(self.std):
            raise ArgumentError(f"Normalize: std must not be 0. Got {self.std}.")

    def apply(self, pixels_CHW: np.ndarray, rng: Any) -> np.ndarray:
        """See Transform.apply."""
        if pixels_CHW.dtype.kind != "f":
            raise DataError(
                f"Normalize: a floating image is needed. Got {describe(pixels_CHW)}. Put ToTensor "
                "before it."
            )
        mean, std = (np.reshape(values, (-1, 1, 1)) for values in (self.mean, self.std))
        if not {len(mean), len(std)} <= {1, len(pixels_CHW)}:
            raise DataError(
                f"Normalize: mean and std need one number, or one for each channel. Got "
                f"{len(mean)} and {len(std)} for {describe(pixels_CHW)}."
            )
        return ((pixels_CHW - mean) / std).astype(pixels_CHW.dtype)


def opened(name: str, image: Any) -> tuple[np.ndarray, Callable[[np.ndarray], Any]]:
    """The pixels of an image as (C, H, W), and what makes an image of the first kind of pixels.

    Raises:
        DataError: it is no image.
    """
    if hasattr(image, "getbands"):
        image = np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    array = image._array if isinstance(image, Tensor) else image
    if isinstance(array, np.ndarray):
        if isinstance(image, Tensor) and array.ndim == 3:
            return array, lambda pixels: wrap(np.ascontiguousarray(pixels))
        if array.dtype == np.uint8 and not isinstance(image, Tensor):
            if array.ndim == 3:
                return array.transpose(2, 0, 1), lambda pixels: pixels.transpose(1, 2, 0)
            if array.ndim == 2:
                return array[None], lambda pixels: pixels[0]
        elif array.ndim == 3 and array.dtype.kind == "f":
            return array, lambda pixels: pixels
    raise DataError(
        f"{name}: an image must be a uint8 array (H, W, C) or (H, W), a floating array (C, H, W), "
        f"or a Tensor (C, H, W) on the CPU. Got {type(image).__name__} {describe(image)}."
    )


def takes_rng(transform: Callable[..., Any]) -> bool:
    """Whether a transform takes the keyword `rng` and has a use for it."""
    if not getattr(transform, "wants_rng", True):
        return False
    try:
        return "rng" in inspect.signature(transform).parameters
    except (TypeError, ValueError):  # written in C
        return False


def transformed(transform: Callable[..., Any] | None, value: Any, rng: Any) -> Any:
    """`transform(value)`, with `rng` where it takes it; `value` without a transform."""
    if transform is None:
        return value
    return transform(value, rng=rng) if takes_rng(transform) else transform(value)


def rounded(pixels: np.ndarray, dtype: Any) -> np.ndarray:
    """Computed pixels in the dtype of an image: whole numbers are rounded and clipped."""
    if dtype.kind == "f":
        return pixels.astype(dtype, copy=False)
    return np.clip(np.rint(pixels), 0, np.iinfo(dtype).max).astype(dtype)


def checked_chance(name: str, p: float) -> float:
    """`p`, which must be a probability."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p must be a probability in [0, 1]. Got {p!r}.")
    return p
