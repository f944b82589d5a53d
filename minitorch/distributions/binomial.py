"""The binomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ArgumentError
from ..ops.creation import arange
from ..ops.elementwise import abs, clamp, exp, floor, log1p
from ..ops.special_functions import lgamma
from . import constraints
from .odds import OddsDistribution
from .utils import (
    broadcast_all,
    enumerated,
    from_draw,
    host,
    one_of,
    rng,
)


class Binomial(OddsDistribution):
    """How many of `total_count` trials succeed.

    Args:
        total_count: Number of trials.
        probs: Probability of success.
        logits: Log-odds of success, instead of `probs`.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: Not exactly one of `probs` and `logits` is given.
    """

    arg_constraints: ClassVar[Any] = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _tensors: ClassVar[dict[str, int]] = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        one_of("Binomial", probs=probs, logits=logits)
        count, given = broadcast_all(total_count, probs if logits is None else logits)
        self.total_count = count.to(given.dtype)
        vars(self)["probs" if logits is None else "logits"] = given
        super().__init__(given.shape, (), validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        """0 to the number of trials."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return clamp(floor((self.total_count + 1) * self.probs), max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        counts = host(self.total_count, shape).astype("int64")
        return from_draw(rng().binomial(counts, host(self.probs, shape)), self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        n, logits = self.total_count, self.logits
        whole = n * clamp(logits, min=0) + n * log1p(exp(-abs(logits))) - lgamma(n + 1)
        return value * logits - lgamma(value + 1) - lgamma(n - value + 1) - whole

    def entropy(self) -> Any:
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        total = int(self.total_count.max().item())
        if self.total_count.min().item() != total:
            raise ArgumentError(
                "Binomial.enumerate_support: total_count must be one number. Got several. "
                "Enumerate one distribution at a time."
            )
        values = arange(1 + total, dtype=self.probs.dtype, device=self.probs.device)
        return enumerated(values, self._batch_shape, expand)
