"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ops.elementwise import exp, log, where
from ..ops.special_functions import lgamma
from . import constraints
from .distribution import Distribution
from .utils import EULER, broadcast_all, from_draw, rng


class Weibull(Distribution):
    """Life times, with `P(X > x) = exp(-(x/scale)^concentration)`.

    Args:
        scale: Scale, above 0.
        concentration: Shape, above 0; above 1 failure gets more probable with age.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"scale": 0, "concentration": 0}

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.scale * exp(lgamma(1 + 1 / self.concentration))

    @property
    def mode(self) -> Any:
        k = self.concentration
        above = where(k > 1, k, k * 0 + 2)
        return where(k > 1, self.scale * ((above - 1) / above) ** (1 / above), self.scale * 0)

    @property
    def variance(self) -> Any:
        k = self.concentration
        return self.scale**2 * (exp(lgamma(1 + 2 / k)) - exp(2 * lgamma(1 + 1 / k)))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        waits = from_draw(rng().standard_exponential(shape), self.scale)
        return self.scale * waits ** (1 / self.concentration)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k, z = self.concentration, value / self.scale
        return log(k / self.scale) + (k - 1) * log(z) - z**k

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - exp(-((value / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> Any:
        return self.scale * (-log(1 - value)) ** (1 / self.concentration)

    def entropy(self) -> Any:
        k = self.concentration
        return EULER * (1 - 1 / k) + log(self.scale / k) + 1
