"""Metrics of how well scores order samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError, describe
from ..ops.primitive import wrap
from .classes import ClassMetric
from .metric import State, check_one_of, check_same_shape


class _OfScores(ClassMetric):
    """Keeps all scores and targets.

    Args:
        task: "binary" or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        average: "macro" over the classes that occur, "weighted" by their frequency, "none".
        ignore_index: Targets of this class do not count.
    """

    def __init__(
        self,
        task: str | None = None,
        num_classes: int | None = None,
        average: str | None = "macro",
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(task, num_classes, 0.5, ignore_index)
        self.average = check_one_of(self, "average", average, ("macro", "weighted", "none", None))

    def _contribution(self, preds: Any, target: Any) -> State:
        if preds.dtype.kind != "f":
            raise DtypeError(
                f"{type(self).__name__}: preds must be scores. Got {describe(wrap(preds))}. Pass "
                "probabilities or logits, not classes."
            )
        self._refuse_nan(preds)
        if self.task == "binary":
            check_same_shape(self, preds, target)
            scores = preds.reshape(-1).astype(np.float64)
        else:
            scores = self._scores(preds, target).astype(np.float64)
        flat, kept = self._targets(target)
        return {"scores": [scores if kept is None else scores[kept]], "target": [flat]}

    def _value(self, state: State) -> Any:
        scores, target = (np.concatenate(state[key]) for key in ("scores", "target"))
        if self.task == "binary":
            return self._area(scores, target == 1)
        areas = np.array([self._area(scores[:, k], target == k) for k in range(self.num_classes)])
        if self.average in ("none", None):
            return areas
        counts = np.bincount(target, minlength=self.num_classes).astype(np.float64)
        # A class that never occurs, or always, has no order to judge.
        known = ~np.isnan(areas)
        weights = counts[known] if self.average == "weighted" else np.ones(int(known.sum()))
        return float((areas[known] * weights).sum() / weights.sum()) if weights.sum() else np.nan

    def _area(self, scores: Any, positive: Any) -> float:
        raise NotImplementedError(f"{type(self).__name__} must override _area()")


class AUROC(_OfScores):
    """The probability that a sample of the class has a higher score than one of the others.

    Equal scores count one half; NaN if all samples or none are of the class. Several classes are
    each judged against the rest.

    Args:
        task: "binary" or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        average: "macro" over the classes that can be judged, "weighted" by their frequency, "none".
        ignore_index: Targets of this class do not count.

    Source: The meaning and use of the area under a ROC curve, Hanley and McNeil, 1982.
    """

    def _area(self, scores: Any, positive: Any) -> float:
        n = int(positive.sum())
        if not 0 < n < positive.size:
            return float("nan")
        _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
        ends = np.cumsum(counts)
        ranks = (ends - (counts - 1) / 2)[inverse]
        pairs = ranks[positive].sum() - n * (n + 1) / 2
        return float(pairs / (n * (positive.size - n)))


class AveragePrecision(_OfScores):
    """The area under the curve of precision over recall, `Σ (Rᵢ - Rᵢ₋₁)·Pᵢ`.

    NaN if no sample is of the class. Several classes are each judged against the rest.

    Args:
        task: "binary" or "multiclass"; default by `num_classes`.
        num_classes: How many classes.
        average: "macro" over the classes that occur, "weighted" by their frequency, "none".
        ignore_index: Targets of this class do not count.
    """

    def _area(self, scores: Any, positive: Any) -> float:
        if not positive.any():
            return float("nan")
        order = np.argsort(-scores, kind="stable")
        hits = np.cumsum(positive[order])
        last = np.append(np.diff(scores[order]) != 0, True)  # the ends of runs of equal scores
        hits, seen = hits[last], np.flatnonzero(last) + 1
        recall = hits / hits[-1]
        return float((np.diff(recall, prepend=0.0) * hits / seen).sum())
