"""What the image data sets share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dataset import Dataset
from ..transforms.base import takes_rng


class ImageDataset(Dataset[tuple[Any, int]]):
    """Images in memory with labels: sample i is (float32 (C, H, W) in [0, 1], int).

    Without a transform a DataLoader reads whole batches at once.

    Attributes:
        data: the stored pixels, uint8 (N, H, W) or (N, H, W, C).
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
        self.wants_rng = transform is not None and takes_rng(transform)

    def __getitem__(self, index: Any, *, rng: np.random.Generator | None = None) -> tuple[Any, int]:
        image: Any = self._scaled(self.data[index])
        if self.transform is not None:
            image = self.transform(image, rng=rng) if self.wants_rng else self.transform(image)
        return image, int(self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """All images, float32 (N, C, H, W) in [0, 1] without the transform, and labels (N,)."""
        return self._scaled(self.data), self.targets.copy()

    def take_batch(self, indices: Any) -> Any:
        """Images and labels of `indices`; NotImplemented with a transform."""
        if self.transform is not None:
            return NotImplemented
        index = slice(indices.start, indices.stop) if type(indices) is range else indices
        targets = self.targets[index]
        return (
            self._scaled(self.data[index]),
            targets.copy() if isinstance(index, slice) else targets,
        )

    def _scaled(self, pixels: np.ndarray) -> np.ndarray:
        """float32 (…, C, H, W) of stored images."""
        grey = self.data.ndim == 3
        shaped = np.expand_dims(pixels, -3) if grey else np.moveaxis(pixels, -1, -3)
        image = shaped.astype(np.float32, order="C")
        image /= np.float32(self.white)
        return image
