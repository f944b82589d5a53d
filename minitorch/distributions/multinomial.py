"""The multinomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ArgumentError
from ..ops.creation import arange
from ..ops.elementwise import exp
from ..ops.special_functions import lgamma
from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all, from_draw, host, rng


class Multinomial(Distribution):
    """How often each of k classes is drawn in `total_count` draws.

    Args:
        total_count: Number of draws.
        probs: f[..., k], weights ≥ 0 of the classes; need not sum to 1.
        logits: f[..., k], unnormalised log-probabilities, instead of `probs`.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: `total_count` is no whole number.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise ArgumentError(
                f"Multinomial: total_count must be one whole number. Got {total_count!r}. "
                "Make a distribution for each count."
            )
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        """Counts that add up."""
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Any:
        """Probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Log-probabilities."""
        return self._categorical.logits

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        probs = host(self.probs, self._extended_shape(sample_shape))
        probs = probs / probs.sum(-1, keepdims=True)
        return from_draw(rng().multinomial(self.total_count, probs), self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0.0)
        size = lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1)
        return size + (logits * value).sum(-1)

    def entropy(self) -> Any:
        n, probs = self.total_count, self.probs
        count = probs.new_full((), float(n))
        counts = arange(1, n + 1, dtype=probs.dtype, device=probs.device)
        counts = counts.reshape((-1, *([1] * probs.ndim)))
        weights = exp(Binomial(n, probs, validate_args=False).log_prob(counts))
        repeated = (weights * lgamma(counts + 1)).sum(0).sum(-1)
        return n * self._categorical.entropy() - lgamma(count + 1) + repeated
