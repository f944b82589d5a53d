"""One-hot vectors relaxed to points of a simplex."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import log
from ..ops.softmax import logsumexp
from ..tensor import Tensor
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, full, uniform_like


class ExpRelaxedCategorical(Distribution):
    """Logarithms of relaxed one-hot vectors.

    Args:
        temperature: Above 0; towards 0 the vectors become one-hot.
        probs: f[..., k], weights of the classes.
        logits: f[..., k], unnormalised log-probabilities, instead of `probs`.
        validate_args: As in `Distribution`.

    Source: The Concrete Distribution, Maddison et al., 2017.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        given = logits if probs is None else probs
        self.temperature = temperature
        if not isinstance(temperature, Tensor):
            self.temperature = full((), temperature, given.dtype, given)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def logits(self) -> Any:
        """Log-probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = uniform_like(self._extended_shape(sample_shape), self.logits)
        scores = (self.logits - log(-log(u))) / self.temperature
        return scores - logsumexp(scores, dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        size = math.lgamma(k) + log(self.temperature) * (k - 1)
        score = logits - value * self.temperature
        score = (score - logsumexp(score, dim=-1, keepdim=True)).sum(-1)
        return score + size


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of a simplex that a temperature pulls to its corners; samples have gradients.

    Args:
        temperature: Above 0; towards 0 the vectors become one-hot.
        probs: f[..., k], weights of the classes.
        logits: f[..., k], unnormalised log-probabilities, instead of `probs`.
        validate_args: As in `Distribution`.

    Source: The Concrete Distribution, Maddison et al., 2017; Categorical Reparameterization with
    Gumbel-Softmax, Jang et al., 2017.
    """

    support = constraints.simplex
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Log-probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self.base_dist.probs
