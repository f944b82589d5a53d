"""The Poisson distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ops.elementwise import floor
from ..ops.special_functions import lgamma, xlogy
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, from_draw, host, rng


class Poisson(Distribution):
    """Counts of independent events, `rate^k·exp(-rate)/k!`.

    Args:
        rate: Expected count, at least 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _tensors: ClassVar[dict[str, int]] = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.rate

    @property
    def mode(self) -> Any:
        return floor(self.rate)

    @property
    def variance(self) -> Any:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return from_draw(rng().poisson(host(self.rate, shape)), self.rate)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return xlogy(value, rate) - rate - lgamma(value + 1)
