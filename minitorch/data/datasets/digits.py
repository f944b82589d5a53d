"""The UCI digits that come with scikit-learn."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DataError
from .images import ImageDataset


class Digits(ImageDataset):
    """1797 handwritten digits of 8×8 pixels, in one set; split it with `random_split`.

    Sample i is (float32 (1, 8, 8) in [0, 1], int).

    Args:
        transform: see ImageDataset.

    Raises:
        DataError: scikit-learn is not installed.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, 1998.
    """

    def __init__(self, *, transform: Callable[..., Any] | None = None) -> None:
        try:
            from sklearn.datasets import load_digits
        except ImportError as error:
            raise DataError(
                f"Digits: the data comes with scikit-learn, which cannot be imported ({error}). "
                "Install minitorch-trainer[examples]."
            ) from error
        bunch = load_digits()
        super().__init__(
            bunch.images.astype(np.uint8),
            bunch.target,
            white=16,
            classes=tuple("0123456789"),
            transform=transform,
        )
