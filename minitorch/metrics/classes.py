"""Class numbers from what models give, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from ..ops.primitive import wrap
from .metric import Metric, check_one_of

TASKS = ("binary", "multiclass")
AVERAGES = ("micro", "macro", "weighted", "none", None)


class ClassMetric(Metric):
    """A metric of class numbers.

    Args:
        task: "binary" or "multiclass"; default "multiclass" if `num_classes` is given.
        num_classes: How many classes; 2 for "binary".
        threshold: Binary scores above it mean class 1.
        ignore_index: Targets of this class do not count.
    """

    def __init__(
        self, task: str | None, num_classes: int | None, threshold: float, ignore_index: int | None
    ) -> None:
        super().__init__()
        if task is None:
            task = "binary" if num_classes is None else "multiclass"
        self.task = check_one_of(self, "task", task, TASKS)
        if task == "binary":
            num_classes = 2 if num_classes is None else num_classes
        least = 2 if task == "binary" else 1
        if not isinstance(num_classes, int) or num_classes < least:
            raise ArgumentError(
                f"{type(self).__name__}: num_classes must be a whole number, at least {least}. "
                f"Got {num_classes!r}."
            )
        self.num_classes = num_classes
        self.threshold = threshold
        self.ignore_index = ignore_index

    def _targets(self, target: Any) -> tuple[Any, Any]:
        """Flat class numbers, and which of them count (None for all)."""
        if target.dtype.kind not in "iub":
            raise DtypeError(
                f"{type(self).__name__}: targets must be class numbers, integers or bool. "
                f"Got {describe(wrap(target))}. Convert it with .long()."
            )
        flat = target.reshape(-1).astype(np.int64)
        kept = None if self.ignore_index is None else flat != self.ignore_index
        if kept is not None:
            flat = flat[kept]
        self._check_range("targets", flat)
        return flat, kept

    def _check_range(self, what: str, flat: Any) -> None:
        if not flat.size:
            return
        low, high = (int(backend.to_host(v)) for v in (flat.min(), flat.max()))
        if low < 0 or high >= self.num_classes:
            raise ArgumentError(
                f"{type(self).__name__}: {what} must be classes from 0 to {self.num_classes - 1}. "
                f"Got {low} to {high}. Set num_classes, or ignore_index for padding."
            )

    def _scores(self, preds: Any, target: Any) -> Any:
        """Scores with the classes last, one row for each target."""
        if preds.ndim < 2 or preds.shape[1] != self.num_classes:
            raise ShapeError(
                f"{type(self).__name__}: scores must be [N, {self.num_classes}, …]. "
                f"Got {describe(wrap(preds))}. Put the classes into axis 1."
            )
        if (preds.shape[0], *preds.shape[2:]) != target.shape:
            raise ShapeError(
                f"{type(self).__name__}: scores [N, C, …] need targets [N, …]. "
                f"Got {describe(wrap(preds))} and {describe(wrap(target))}."
            )
        xp = backend.namespace(preds)
        return xp.moveaxis(preds, 1, -1).reshape(-1, self.num_classes)

    def _refuse_nan(self, scores: Any) -> None:
        """Raises ArgumentError for NaN among scores, which has no rank and is no class."""
        count = int(backend.to_host((scores != scores).sum()))
        if count:
            raise ArgumentError(
                f"{type(self).__name__}: scores must be numbers. Got {count} NaN among "
                f"{scores.size}. Look for the first loss or weight that is not finite."
            )

    def _classes(self, preds: Any, target: Any) -> Any:
        """Flat class numbers of the predictions."""
        if preds.dtype.kind == "f":
            self._refuse_nan(preds)
        if preds.dtype.kind == "f" and self.task == "multiclass":
            return self._scores(preds, target).argmax(axis=1)
        if preds.shape != target.shape:
            raise ShapeError(
                f"{type(self).__name__}: preds and target must have one shape. "
                f"Got {describe(wrap(preds))} and {describe(wrap(target))}. Float preds of "
                "several classes are [N, C, …], with task='multiclass'."
            )
        if preds.dtype.kind == "f":
            return (probabilities(preds) > self.threshold).reshape(-1).astype(np.int64)
        return preds.reshape(-1).astype(np.int64)


def probabilities(scores: Any) -> Any:
    """Binary scores; where any lies outside of 0 to 1 they are log-odds."""
    xp = backend.namespace(scores)
    wide = scores.astype(np.float64)
    if not scores.size or not bool(backend.to_host(((wide < 0) | (wide > 1)).any())):
        return wide
    return 1 / (1 + xp.exp(-wide))
