"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..nn.functional import logsigmoid
from ..ops.elementwise import clamp, exp, floor
from ..ops.special_functions import lgamma
from . import constraints
from .odds import OddsDistribution
from .utils import (
    broadcast_all,
    from_draw,
    host,
    one_of,
    rng,
)


class NegativeBinomial(OddsDistribution):
    """How many trials succeed before `total_count` have failed.

    Args:
        total_count: Failures at which it stops, above 0; need not be whole.
        probs: Probability of success, below 1.
        logits: Log-odds of success, instead of `probs`.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: Not exactly one of `probs` and `logits` is given.
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _tensors: ClassVar[dict[str, int]] = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        one_of("NegativeBinomial", probs=probs, logits=logits)
        count, given = broadcast_all(total_count, probs if logits is None else logits)
        self.total_count = count.to(given.dtype)
        vars(self)["probs" if logits is None else "logits"] = given
        super().__init__(given.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * exp(self.logits)

    @property
    def mode(self) -> Any:
        return clamp(floor((self.total_count - 1) * exp(self.logits)), min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        counts, probs = host(self.total_count, shape), host(self.probs, shape)
        rates = rng().standard_gamma(counts) * probs / (1 - probs)
        return from_draw(rng().poisson(rates), self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n = self.total_count
        weight = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        size = lgamma(n + value) - lgamma(1.0 + value) - lgamma(n)
        return weight + size.masked_fill(n + value == 0.0, 0.0)
