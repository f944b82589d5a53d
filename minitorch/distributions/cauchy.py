"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import atan, log, log1p, tan
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, from_draw, rng


class Cauchy(Distribution):
    """The ratio of two normal variables, `1/(π·scale·(1 + ((x-loc)/scale)²))`; it has no mean.

    Args:
        loc: Median.
        scale: Half width at half maximum, above 0.
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
        return (self.loc * math.nan).detach()

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return (self.loc * 0 + math.inf).detach()

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = rng().standard_cauchy(tuple(self._extended_shape(sample_shape)))
        return self.loc + from_draw(noise, self.loc) * self.scale

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - log(self.scale) - log1p(z * z)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + log(self.scale)
