"""The exponential distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ops.elementwise import exp, log, log1p
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, from_draw, rng


class Exponential(Distribution):
    """Waiting times, `rate·exp(-rate·x)`.

    Args:
        rate: Events per unit, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return 1 / self.rate

    @property
    def mode(self) -> Any:
        return (self.rate * 0).detach()

    @property
    def stddev(self) -> Any:
        return 1 / self.rate

    @property
    def variance(self) -> Any:
        return self.rate**-2

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        return from_draw(rng().standard_exponential(shape), self.rate) / self.rate

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return log(self.rate) - self.rate * value

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - exp(-self.rate * value)

    def icdf(self, value: Any) -> Any:
        return -log1p(-value) / self.rate

    def entropy(self) -> Any:
        return 1 - log(self.rate)
