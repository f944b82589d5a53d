"""Losses over many labels or classes: CTC and the adaptive softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..errors import ArgumentError, IndexRangeError, ShapeError, describe
from ..ops import joining
from ..ops.indexing import nonzero, scatter_add
from ..tensor import Tensor
from . import functional as F
from .containers import ModuleList, Sequential
from .linear import Linear
from .loss import _Loss
from .module import Module


class CTCLoss(_Loss):
    """Negative log-probability of label sequences; see `functional.ctc_loss`."""

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class _Result(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes in which rare ones share fewer features.

    The classes below `cutoffs[0]` and one entry per cluster are in the head; each cluster of rarer
    classes has a projection to `in_features / div_value^i` features of its own.

    Args:
        in_features: Features of the input.
        n_classes: Number of classes, most frequent first.
        cutoffs: Where the clusters begin, rising.
        div_value: How many times fewer features the next cluster has.
        head_bias: Whether the head has a bias.
        device: Where the parameters live.
        dtype: Their dtype.

    Raises:
        ArgumentError: The cutoffs do not rise from 1 to n_classes - 1.

    Source: Grave et al., Efficient softmax approximation for GPUs, 2016.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        whole = all(isinstance(c, int) and 0 < c < n_classes for c in cutoffs)
        if not cutoffs or not whole or cutoffs != sorted(set(cutoffs)):
            raise ArgumentError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs must be rising whole numbers from 1 to "
                f"{n_classes - 1}. Got {cutoffs}."
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **where),
                    Linear(width, size, bias=False, **where),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new start values."""
        self.head.reset_parameters()
        for layer in self.tail.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> _Result:
        """The log-probability of each target, and the mean of its negative.

        Args:
            input: f[N, in_features] or f[in_features].
            target: Class numbers [N] or [].

        Returns:
            `(output, loss)`: f[N] or f[], and a number.

        Raises:
            ShapeError: The shapes do not belong together.
            IndexRangeError: A class is out of range.
        """
        name = "AdaptiveLogSoftmaxWithLoss"
        if input.ndim not in (1, 2) or tuple(target.shape) != tuple(input.shape[:-1]):
            raise ShapeError(
                f"{name}: inputs must be [N, features] with a target [N], or [features] with a "
                f"target []. Got {describe(input)} and {describe(target)}."
            )
        x, t = (input, target) if input.ndim == 2 else (input.unsqueeze(0), target.unsqueeze(0))
        if t.numel() and (int(t.min()) < 0 or int(t.max()) >= self.n_classes):
            raise IndexRangeError(
                f"{name}: classes must be from 0 to {self.n_classes - 1}. "
                f"Got {int(t.min())} to {int(t.max())}."
            )
        entry = t
        outside = x.new_zeros((len(t),))
        for i, tail in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            inside = (t >= low) & (t < high)
            rows = nonzero(inside).squeeze(1)
            if not len(rows):
                continue
            entry = (self.shortlist_size + i) * inside + entry * ~inside
            inner = F.log_softmax(tail(x.index_select(0, rows)), 1)
            picked = inner.gather(1, (t[rows] - low).unsqueeze(1)).squeeze(1)
            outside = scatter_add(outside, 0, rows, picked)
        head = F.log_softmax(self.head(x), 1)
        output = head.gather(1, entry.unsqueeze(1)).squeeze(1) + outside
        loss = (-output).mean()
        return _Result(output if input.ndim == 2 else output.squeeze(0), loss)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, f[N, n_classes]."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            entry = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(tail(input), 1) + entry)
        return joining.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row, int64[N]."""
        return self.log_prob(input).argmax(1)
