"""Batches whose samples are mixed with each other."""

from typing import Any

import numpy as np

from ...dtypes import get_default_dtype
from ...errors import ArgumentError, DataError, describe
from ...nn.functional.layer import one_hot
from ...random import stream
from ...tensor import Tensor


class _Mix:
    """What MixUp and CutMix share."""

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None) -> None:
        if not alpha > 0:
            raise ArgumentError(f"{type(self).__name__}: alpha must be > 0. Got {alpha!r}.")
        self.alpha = alpha
        self.num_classes = num_classes

    def __call__(
        self, images: Tensor, labels: Tensor, *, rng: np.random.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """The mixed images, and labels as shares (N, num_classes).

        Args:
            images: (N, C, H, W), floating.
            labels: integers (N,), or shares (N, num_classes).
            rng: a NumPy generator; None for the stream "mix", whose position checkpoints save.
        """
        if images.ndim != 4 or not images.is_floating_point() or len(labels) != len(images):
            raise DataError(
                f"{type(self).__name__}: images must be floating (N, C, H, W) and labels (N,). Got "
                f"{describe(images)} and {describe(labels)}. Call it on batches, after collating."
            )
        rng = stream("mix").numpy() if rng is None else rng
        mixed, share = self._mixed(images, float(rng.beta(self.alpha, self.alpha)), rng)
        shares = self._shares(labels)
        return mixed, shares * share + shares.roll(1, 0) * (1 - share)

    def _shares(self, labels: Tensor) -> Tensor:
        if labels.ndim == 2:
            return labels
        if self.num_classes is None:
            raise ArgumentError(
                f"{type(self).__name__}: labels (N,) need num_classes. Give it at construction."
            )
        return one_hot(labels, self.num_classes).to(get_default_dtype())

    def _mixed(self, images: Tensor, share: float, rng: Any) -> tuple[Tensor, float]:
        raise NotImplementedError


class MixUp(_Mix):
    """`λ x_i + (1 - λ) x_(i-1)` for the whole batch, with λ ~ Beta(alpha, alpha).

    Args:
        alpha: of the Beta distribution.
        num_classes: how many classes integer labels have.

    Source: H. Zhang, M. Cisse, Y. Dauphin and D. Lopez-Paz, mixup: Beyond Empirical Risk
    Minimization, ICLR 2018.
    """

    def _mixed(self, images: Tensor, share: float, rng: Any) -> tuple[Tensor, float]:
        return images * share + images.roll(1, 0) * (1 - share), share


class CutMix(_Mix):
    """A rectangle of each image from the one before it; labels by the area.

    Args:
        alpha: of the Beta distribution of the share that stays.
        num_classes: how many classes integer labels have.

    Source: S. Yun, D. Han, S. J. Oh, S. Chun, J. Choe and Y. Yoo, CutMix: Regularization Strategy
    to Train Strong Classifiers with Localizable Features, ICCV 2019.
    """

    def _mixed(self, images: Tensor, share: float, rng: Any) -> tuple[Tensor, float]:
        rows, columns = images.shape[2:]
        y, x = int(rng.integers(rows)), int(rng.integers(columns))
        half = 0.5 * (1 - share) ** 0.5
        top, bottom = max(0, y - int(half * rows)), min(rows, y + int(half * rows))
        left, right = max(0, x - int(half * columns)), min(columns, x + int(half * columns))
        mixed = images.clone()
        mixed[:, :, top:bottom, left:right] = images.roll(1, 0)[:, :, top:bottom, left:right]
        return mixed, 1 - (bottom - top) * (right - left) / (rows * columns)
