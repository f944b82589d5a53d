"""The categorical distribution with classes as vectors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..ops.creation import eye
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all, draw_classes, from_draw


class OneHotCategorical(Distribution):
    """One of k classes, as a vector with a single 1.

    Args:
        probs: f[..., k], weights ≥ 0 of the classes; need not sum to 1.
        logits: f[..., k], unnormalised log-probabilities, instead of `probs`.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Log-probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return self._rows(self._categorical.mode)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def _rows(self, index: Any) -> Any:
        k = self._categorical._num_events
        return eye(k, dtype=self.probs.dtype, device=self.probs.device)[index]

    def sample(self, sample_shape: Any = ()) -> Any:
        found = draw_classes(self.probs, sample_shape)
        return from_draw(np.eye(self._categorical._num_events)[found], self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        _, value = broadcast_all(self.logits, value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        k = self._categorical._num_events
        values = eye(k, dtype=self.probs.dtype, device=self.probs.device)
        values = values.reshape((k, *([1] * len(self._batch_shape)), k))
        return values.expand((k, *self._batch_shape, k)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples hand their gradient to the probabilities unchanged.

    Source: Estimating or Propagating Gradients Through Stochastic Neurons for Conditional
    Computation, Bengio et al., 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())
