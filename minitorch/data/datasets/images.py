"""What the image data sets share."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dataset import Dataset


class ImageDataset(Dataset[tuple[Any, int]]):
    """Grey images with labels: sample i is (float32 (1, H, W) in [0, 1], int).

    Without a transform a DataLoader reads whole batches at once.

    Attributes:
        data: the stored pixels, uint8 (N, H, W).
        targets: the labels, int64 (N,).
        classes: name of each label.

    Args:
        data: as above.
        targets: (N,) integers.
        white: the pixel value that becomes 1.
        classes: name of each label.
        transform: called with each image, and with `rng=` where it takes that keyword; what it
            returns takes the place of the image.
    """

    def __init__(
        self,
        data: np.ndarray,
        targets: np.ndarray,
        *,
        white: int,
        classes: tuple[str, ...],
        transform: Callable[..., Any] | None,
    ) -> None:
        self.data = data
        self.targets = targets.astype(np.int64)
        self.white = white
        self.classes = classes
        self.transform = transform
        self.wants_rng = transform is not None and _takes_rng(transform)

    def __getitem__(self, index: Any, *, rng: np.random.Generator | None = None) -> tuple[Any, int]:
        image: Any = self._scaled(self.data[index])[None]
        if self.transform is not None:
            image = self.transform(image, rng=rng) if self.wants_rng else self.transform(image)
        return image, int(self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """All images, float32 (N, 1, H, W) in [0, 1] without the transform, and labels (N,)."""
        return self._scaled(self.data)[:, None], self.targets.copy()

    def take_batch(self, indices: Any) -> Any:
        """Images and labels of `indices`; NotImplemented with a transform."""
        if self.transform is not None:
            return NotImplemented
        index = slice(indices.start, indices.stop) if type(indices) is range else indices
        targets = self.targets[index]
        return (
            self._scaled(self.data[index])[:, None],
            targets.copy() if isinstance(index, slice) else targets,
        )

    def _scaled(self, pixels: np.ndarray) -> np.ndarray:
        image = pixels.astype(np.float32)
        image /= np.float32(self.white)
        return image


def _takes_rng(transform: Callable[..., Any]) -> bool:
    try:
        return "rng" in inspect.signature(transform).parameters
    except (TypeError, ValueError):  # written in C
        return False
