"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import exp, log
from . import constraints
from .distribution import Distribution
from .utils import EULER, broadcast_all, uniform_like


class Gumbel(Distribution):
    """Largest values, with `P(X ≤ x) = exp(-exp(-(x-loc)/scale))`.

    Args:
        loc: Most probable value.
        scale: Scale, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = uniform_like(self._extended_shape(sample_shape), self.loc)
        return self.loc - self.scale * log(-log(u))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return y - exp(y) - log(self.scale)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return exp(-exp((self.loc - value) / self.scale))

    def icdf(self, value: Any) -> Any:
        return self.loc - self.scale * log(-log(value))

    def entropy(self) -> Any:
        return log(self.scale) + (1 + EULER)
