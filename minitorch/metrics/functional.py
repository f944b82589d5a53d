"""Metrics of one batch as functions; options as in the classes."""

from __future__ import annotations

from typing import Any

from .confusion import Accuracy, ConfusionMatrix, F1Score, JaccardIndex, Precision, Recall
from .metric import Metric
from .ranking import AUROC, AveragePrecision
from .regression import MeanAbsoluteError, MeanSquaredError, Perplexity, R2Score


def _once(metric: Metric, preds: Any, target: Any) -> Any:
    return metric(preds, target)


def accuracy(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`Accuracy` of one batch."""
    return _once(Accuracy(task, **options), preds, target)


def precision(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`Precision` of one batch."""
    return _once(Precision(task, **options), preds, target)


def recall(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`Recall` of one batch."""
    return _once(Recall(task, **options), preds, target)


def f1_score(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`F1Score` of one batch."""
    return _once(F1Score(task, **options), preds, target)


def jaccard_index(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`JaccardIndex` of one batch."""
    return _once(JaccardIndex(task, **options), preds, target)


def confusion_matrix(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`ConfusionMatrix` of one batch."""
    return _once(ConfusionMatrix(task, **options), preds, target)


def auroc(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`AUROC` of one batch."""
    return _once(AUROC(task, **options), preds, target)


def average_precision(preds: Any, target: Any, task: str | None = None, **options: Any) -> Any:
    """`AveragePrecision` of one batch."""
    return _once(AveragePrecision(task, **options), preds, target)


def mean_squared_error(preds: Any, target: Any, squared: bool = True) -> Any:
    """`MeanSquaredError` of one batch."""
    return _once(MeanSquaredError(squared), preds, target)


def mean_absolute_error(preds: Any, target: Any) -> Any:
    """`MeanAbsoluteError` of one batch."""
    return _once(MeanAbsoluteError(), preds, target)


def r2_score(preds: Any, target: Any, multioutput: str = "uniform_average") -> Any:
    """`R2Score` of one batch."""
    return _once(R2Score(multioutput), preds, target)


def perplexity(preds: Any, target: Any, ignore_index: int | None = None) -> Any:
    """`Perplexity` of one batch."""
    return _once(Perplexity(ignore_index), preds, target)
