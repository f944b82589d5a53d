"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import erf, log
from ..ops.special_functions import erfinv
from . import constraints
from .distribution import Distribution
from .utils import LOG_2PI, broadcast_all, normal_like


class Normal(Distribution):
    """The normal distribution, `exp(-(x-loc)²/(2·scale²)) / √(2π·scale²)`.

    Args:
        loc: Mean.
        scale: Standard deviation, above 0.
        validate_args: As in `Distribution`.

    >>> round(mt.distributions.Normal(0.0, 1.0).log_prob(mt.tensor(0.0)).item(), 4)
    -0.9189
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
    def stddev(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        return self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = normal_like(self._extended_shape(sample_shape), self.loc)
        return self.loc + noise * self.scale

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -z * z / 2 - log(self.scale) - LOG_2PI / 2

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return (1 + erf((value - self.loc) / self.scale / math.sqrt(2))) * 0.5

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * LOG_2PI + log(self.scale)
