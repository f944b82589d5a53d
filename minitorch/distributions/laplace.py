"""The Laplace distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import abs, expm1, log, log1p, sign
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, uniform_like


class Laplace(Distribution):
    """The two-sided exponential distribution, `exp(-|x-loc|/scale)/(2·scale)`.

    Args:
        loc: Mean.
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
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 2 * self.scale**2

    @property
    def stddev(self) -> Any:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Any:
        u = 2 * uniform_like(self._extended_shape(sample_shape), self.loc) - 1
        return self.loc - self.scale * (sign(u) * log1p(-abs(u)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -log(2 * self.scale) - abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        distance = value - self.loc
        return 0.5 - 0.5 * sign(distance) * expm1(-abs(distance) / self.scale)

    def icdf(self, value: Any) -> Any:
        middle = value - 0.5
        return self.loc - self.scale * sign(middle) * log1p(-2 * abs(middle))

    def entropy(self) -> Any:
        return 1 + log(2 * self.scale)
