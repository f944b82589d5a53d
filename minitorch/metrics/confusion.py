"""Metrics that follow from how often each class was taken for each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..errors import ArgumentError
from .classes import AVERAGES, ClassMetric
from .metric import State, check_one_of


class _OfMatrix(ClassMetric):
    """Counts [target, prediction] in a matrix.

    Args:
        task: "binary" or "multiclass"; default "multiclass" if `num_classes` is given.
        num_classes: How many classes.
        threshold: Binary scores above it mean class 1.
        average: See the subclass.
        ignore_index: Targets of this class do not count.
    """

    def __init__(
        self,
        task: str | None = None,
        num_classes: int | None = None,
        threshold: float = 0.5,
        average: str | None = "micro",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(task, num_classes, threshold, ignore_index)
        self.average = check_one_of(self, "average", average, AVERAGES)

    def _contribution(self, preds: Any, target: Any) -> State:
        found = self._classes(preds, target)
        flat, kept = self._targets(target)
        found = found if kept is None else found[kept]
        self._check_range("predictions", found)
        xp, k = backend.namespace(target), self.num_classes
        return {"matrix": xp.bincount(flat * k + found, minlength=k * k).reshape(k, k)}

    def _value(self, state: State) -> Any:
        matrix = state["matrix"].astype(np.float64)
        hits = np.diag(matrix)
        missed, false = matrix.sum(1) - hits, matrix.sum(0) - hits
        if self.task == "binary":
            return self._ratio(hits[1:], false[1:], missed[1:])[0]
        if self.average == "micro":
            return self._ratio(*(v.sum(keepdims=True) for v in (hits, false, missed)))[0]
        scores = self._ratio(hits, false, missed)
        if self.average in ("none", None):
            return scores
        seen = (hits + missed + false > 0).astype(np.float64)
        weights = hits + missed if self.average == "weighted" else seen
        return float((scores * weights).sum() / weights.sum()) if weights.sum() else 0.0

    def _ratio(self, hits: Any, false: Any, missed: Any) -> Any:
        """The measure of each class from true positives, false positives and false negatives."""
        raise NotImplementedError(f"{type(self).__name__} must override _ratio()")


def _divided(above: Any, below: Any) -> Any:
    """The quotient, 0 where nothing was counted."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


class Precision(_OfMatrix):
    """The part of the predictions of a class that are right, `TP/(TP + FP)`; 0 without any.

    Args:
        task: "binary" (class 1 counts) or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        threshold: Binary scores above it mean class 1.
        average: "micro" over all samples, "macro" over the classes that occur, "weighted" by their
            frequency, "none" for each class.
        ignore_index: Targets of this class do not count.
    """

    def _ratio(self, hits: Any, false: Any, missed: Any) -> Any:
        return _divided(hits, hits + false)


class Recall(_OfMatrix):
    """The part of the samples of a class that are found, `TP/(TP + FN)`; 0 without any.

    Args:
        task: "binary" (class 1 counts) or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        threshold: Binary scores above it mean class 1.
        average: "micro", "macro", "weighted" or "none", as in `Precision`.
        ignore_index: Targets of this class do not count.
    """

    def _ratio(self, hits: Any, false: Any, missed: Any) -> Any:
        return _divided(hits, hits + missed)


class F1Score(_OfMatrix):
    """The harmonic mean of precision and recall, `2·TP/(2·TP + FP + FN)`.

    Args:
        task: "binary" (class 1 counts) or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        threshold: Binary scores above it mean class 1.
        average: "micro", "macro", "weighted" or "none", as in `Precision`.
        ignore_index: Targets of this class do not count.
    """

    def _ratio(self, hits: Any, false: Any, missed: Any) -> Any:
        return _divided(2 * hits, 2 * hits + false + missed)


class JaccardIndex(_OfMatrix):
    """Intersection over union, `TP/(TP + FP + FN)`.

    Args:
        task: "binary" (class 1 counts) or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        threshold: Binary scores above it mean class 1.
        average: "micro", "macro", "weighted" or "none", as in `Precision`.
        ignore_index: Targets of this class do not count.
    """

    def __init__(
        self,
        task: str | None = None,
        num_classes: int | None = None,
        threshold: float = 0.5,
        average: str | None = "macro",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(task, num_classes, threshold, average, ignore_index)

    def _ratio(self, hits: Any, false: Any, missed: Any) -> Any:
        return _divided(hits, hits + false + missed)


class ConfusionMatrix(_OfMatrix):
    """How often samples of each class (rows) were taken for each class (columns).

    Args:
        task: "binary" or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        threshold: Binary scores above it mean class 1.
        normalize: "true" over rows, "pred" over columns, "all" over all, or None for counts.
        ignore_index: Targets of this class do not count.
    """

    def __init__(
        self,
        task: str | None = None,
        num_classes: int | None = None,
        threshold: float = 0.5,
        normalize: str | None = None,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(task, num_classes, threshold, "none", ignore_index)
        self.normalize = check_one_of(self, "normalize", normalize, (None, "true", "pred", "all"))

    def _value(self, state: State) -> Any:
        matrix = state["matrix"]
        if self.normalize is None:
            return matrix
        counts = matrix.astype(np.float64)
        axis = {"true": 1, "pred": 0, "all": None}[self.normalize]
        return _divided(counts, np.broadcast_to(counts.sum(axis, keepdims=True), counts.shape))


class Accuracy(_OfMatrix):
    """The part of the samples whose class is found.

    "macro" is the mean of the classes' recalls. With `top_k` the class may be among the k largest
    scores.

    Args:
        task: "binary" or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        threshold: Binary scores above it mean class 1.
        average: "micro" over all samples, "macro" over the classes that occur, "weighted" by their
            frequency, "none" for each class.
        top_k: How many scores count.
        ignore_index: Targets of this class do not count.

    Raises:
        ArgumentError: `top_k` is not between 1 and the number of classes.
    """

    def __init__(
        self,
        task: str | None = None,
        num_classes: int | None = None,
        threshold: float = 0.5,
        average: str | None = "micro",
        top_k: int = 1,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(task, num_classes, threshold, average, ignore_index)
        if not isinstance(top_k, int) or not 1 <= top_k <= self.num_classes:
            raise ArgumentError(
                f"Accuracy: top_k must be from 1 to the {self.num_classes} classes. Got {top_k!r}."
            )
        if top_k > 1 and self.task == "binary":
            raise ArgumentError("Accuracy: top_k needs several classes. Got task 'binary'.")
        self.top_k = top_k

    def _contribution(self, preds: Any, target: Any) -> State:
        flat, kept = self._targets(target)
        xp, k = backend.namespace(target), self.num_classes
        if self.top_k > 1:
            if preds.dtype.kind != "f":
                raise ArgumentError("Accuracy: top_k needs scores [N, C, …]. Got class numbers.")
            scores = self._scores(preds, target)
            scores = scores if kept is None else scores[kept]
            own = xp.take_along_axis(scores, flat[:, None], 1)
            # Of equal scores the class with the smaller number comes first.
            earlier = (scores == own) & (xp.arange(k) < flat[:, None])
            right = ((scores > own) | earlier).sum(axis=1) < self.top_k
        else:
            found = self._classes(preds, target)
            found = found if kept is None else found[kept]
            self._check_range("predictions", found)
            right = found == flat
            wrong = xp.bincount(found, minlength=k)
        hits = xp.bincount(flat, weights=right.astype(np.float64), minlength=k)
        count = xp.bincount(flat, minlength=k)
        guesses = count if self.top_k > 1 else wrong
        return {"hits": hits, "count": count, "guesses": guesses}

    def _value(self, state: State) -> Any:
        hits, count = state["hits"], state["count"].astype(np.float64)
        if self.task == "binary" or self.average == "micro":
            return float(hits.sum() / count.sum()) if count.sum() else 0.0
        scores = _divided(hits, count)
        if self.average in ("none", None):
            return scores
        seen = ((count > 0) | (state["guesses"] > 0)).astype(np.float64)
        weights = count if self.average == "weighted" else seen
        return float((scores * weights).sum() / weights.sum()) if weights.sum() else 0.0
