"""Bernoulli variables relaxed to numbers between 0 and 1."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ops.elementwise import log, log1p, logaddexp, zeros_like
from ..tensor import Tensor
from . import constraints
from .odds import OddsDistribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import (
    broadcast_all,
    clamp_probs,
    full,
    one_of,
    uniform_like,
)


class LogitRelaxedBernoulli(OddsDistribution):
    """Log-odds of relaxed Bernoulli variables.

    Args:
        temperature: Above 0; towards 0 the variables become 0 or 1.
        probs: Probabilities of 1.
        logits: Log-odds of 1, instead of `probs`.
        validate_args: As in `Distribution`.

    Source: The Concrete Distribution, Maddison et al., 2017.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        one_of("RelaxedBernoulli", probs=probs, logits=logits)
        (given,) = broadcast_all(probs if logits is None else logits)
        vars(self)["probs" if logits is None else "logits"] = given
        self.temperature = temperature
        if not isinstance(temperature, Tensor):
            self.temperature = full((), temperature, given.dtype, given)
        super().__init__(given.shape, (), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        probs = clamp_probs(self.probs)
        u = uniform_like(self._extended_shape(sample_shape), probs)
        odds = log(u) - log1p(-u) + log(probs) - log1p(-probs)
        return odds / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        apart = self.logits - value * self.temperature
        return log(self.temperature) + apart - 2 * logaddexp(apart, zeros_like(apart))


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 that a temperature pulls to the ends; samples have gradients.

    Args:
        temperature: Above 0; towards 0 the variables become 0 or 1.
        probs: Probabilities of 1.
        logits: Log-odds of 1, instead of `probs`.
        validate_args: As in `Distribution`.

    Source: The Concrete Distribution, Maddison et al., 2017; Categorical Reparameterization with
    Gumbel-Softmax, Jang et al., 2017.
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args)
        super().__init__(base, SigmoidTransform(), validate_args)

    @property
    def temperature(self) -> Any:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """Log-odds of 1."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """Probabilities of 1."""
        return self.base_dist.probs
