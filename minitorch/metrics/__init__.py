"""Measures of quality that can be summed up over batches, merged, saved and logged."""

from ..lazy import lazy

_HOLDERS = {
    "metric": "Metric",
    "confusion": "Accuracy ConfusionMatrix F1Score JaccardIndex Precision Recall",
    "ranking": "AUROC AveragePrecision",
    "regression": "MeanAbsoluteError MeanSquaredError Perplexity R2Score",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS, ["functional"])
