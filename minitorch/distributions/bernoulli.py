"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.creation import arange
from ..ops.elementwise import where
from . import constraints
from .odds import OddsDistribution
from .utils import (
    binary_cross_entropy,
    broadcast_all,
    enumerated,
    from_draw,
    host,
    one_of,
    rng,
)


class Bernoulli(OddsDistribution):
    """1 with probability `probs`, else 0.

    Args:
        probs: Probabilities of 1.
        logits: Log-odds of 1, instead of `probs`.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: Not exactly one of `probs` and `logits` is given.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.boolean
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        one_of("Bernoulli", probs=probs, logits=logits)
        name = "probs" if logits is None else "logits"
        (given,) = broadcast_all(probs if logits is None else logits)
        vars(self)[name] = given
        super().__init__(given.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        mode = (self.probs >= 0.5).to(self.probs.dtype)
        return where(self.probs == 0.5, mode * math.nan, mode)

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return from_draw(rng().random(tuple(shape)) < host(self.probs, shape), self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -binary_cross_entropy(*broadcast_all(self.logits, value))

    def entropy(self) -> Any:
        return binary_cross_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(2, dtype=self.probs.dtype, device=self.probs.device)
        return enumerated(values, self._batch_shape, expand)
