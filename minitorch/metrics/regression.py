"""Metrics of numbers and of log-likelihoods."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..errors import ArgumentError, ShapeError, describe
from ..ops.primitive import wrap
from .metric import Metric, State, check_one_of, check_same_shape


class MeanSquaredError(Metric):
    """The mean of the squared differences, or its root.

    Args:
        squared: False gives the root.
    """

    def __init__(self, squared: bool = True) -> None:
        super().__init__()
        self.squared = squared

    def _contribution(self, preds: Any, target: Any) -> State:
        check_same_shape(self, preds, target)
        apart = preds.astype(np.float64) - target.astype(np.float64)
        return {"total": (apart * apart).sum(), "count": np.float64(preds.size)}

    def _value(self, state: State) -> Any:
        mean = float(state["total"] / state["count"]) if state["count"] else float("nan")
        return mean if self.squared else mean**0.5


class MeanAbsoluteError(Metric):
    """The mean of the sizes of the differences."""

    def _contribution(self, preds: Any, target: Any) -> State:
        check_same_shape(self, preds, target)
        apart = preds.astype(np.float64) - target.astype(np.float64)
        return {"total": abs(apart).sum(), "count": np.float64(preds.size)}

    def _value(self, state: State) -> Any:
        return float(state["total"] / state["count"]) if state["count"] else float("nan")


class R2Score(Metric):
    """The part of the variance that the predictions explain, `1 - Σ(y - ŷ)²/Σ(y - ȳ)²`.

    Means and squares are merged so that no digits cancel (Chan et al., 1979). A constant target
    gives 1 if it is met exactly and 0 if not.

    Args:
        multioutput: For [N, outputs] "uniform_average", "variance_weighted" or "raw_values".

    Raises:
        ShapeError: The inputs are not [N] or [N, outputs].
    """

    def __init__(self, multioutput: str = "uniform_average") -> None:
        super().__init__()
        allowed = ("uniform_average", "variance_weighted", "raw_values")
        self.multioutput = check_one_of(self, "multioutput", multioutput, allowed)

    def _contribution(self, preds: Any, target: Any) -> State:
        check_same_shape(self, preds, target)
        if target.ndim not in (1, 2) or not target.shape[0]:
            raise ShapeError(
                f"R2Score: inputs must be [N] or [N, outputs], with samples. "
                f"Got {describe(wrap(target))}."
            )
        y = target.astype(np.float64).reshape(target.shape[0], -1)
        apart = y - preds.astype(np.float64).reshape(y.shape)
        mean = y.mean(axis=0)
        spread = ((y - mean) ** 2).sum(axis=0)
        count = np.float64(y.shape[0])
        return {"residual": (apart * apart).sum(axis=0), "mean": mean, "spread": spread,
                "count": count}  # fmt: skip

    def _joined(self, first: State, second: State) -> State:
        n, m = first["count"], second["count"]
        apart = second["mean"] - first["mean"]
        return {
            "residual": first["residual"] + second["residual"],
            "mean": first["mean"] + apart * (m / (n + m)),
            "spread": first["spread"] + second["spread"] + apart * apart * (n * m / (n + m)),
            "count": n + m,
        }

    def _value(self, state: State) -> Any:
        residual, spread = state["residual"], state["spread"]
        if state["count"] < 2:
            raise ArgumentError("R2Score.compute: at least two samples are needed. Got one.")
        scores = np.where(residual == 0, 1.0, 0.0)
        np.divide(residual, spread, out=scores, where=spread > 0)
        scores = np.where(spread > 0, 1 - scores, scores)
        if self.multioutput == "raw_values":
            return scores
        if self.multioutput == "variance_weighted" and spread.sum():
            return float((scores * spread).sum() / spread.sum())
        return float(scores.mean())


class Perplexity(Metric):
    """`exp` of the mean negative log-likelihood per token.

    Args:
        ignore_index: Targets of this class do not count.

    Raises:
        ShapeError: preds are not [..., classes] for targets [...].
        ArgumentError: A target is no class.
    """

    def __init__(self, ignore_index: int | None = None) -> None:
        super().__init__()
        self.ignore_index = ignore_index

    def _contribution(self, preds: Any, target: Any) -> State:
        if preds.ndim < 2 or preds.shape[:-1] != target.shape or target.dtype.kind not in "iu":
            raise ShapeError(
                "Perplexity: preds must be logits [..., classes] for class numbers [...]. "
                f"Got {describe(wrap(preds))} and {describe(wrap(target))}."
            )
        xp = backend.namespace(preds)
        rows, flat = preds.reshape(-1, preds.shape[-1]).astype(np.float64), target.reshape(-1)
        if self.ignore_index is not None:
            kept = flat != self.ignore_index
            rows, flat = rows[kept], flat[kept]
        if flat.size:
            low, high = (int(backend.to_host(v)) for v in (flat.min(), flat.max()))
            if low < 0 or high >= rows.shape[1]:
                raise ArgumentError(
                    f"Perplexity: targets must be classes from 0 to {rows.shape[1] - 1}. "
                    f"Got {low} to {high}. Set ignore_index for padding."
                )
        top = rows.max(axis=1, keepdims=True) if flat.size else rows[:, :1]
        sizes = xp.log(xp.exp(rows - top).sum(axis=1)) + top[:, 0]
        own = xp.take_along_axis(rows, flat[:, None], 1)[:, 0]
        return {"total": (sizes - own).sum(), "count": np.float64(flat.size)}

    def _value(self, state: State) -> Any:
        return float(np.exp(state["total"] / state["count"])) if state["count"] else float("nan")
