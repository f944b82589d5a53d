"""The Pareto distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import exp, log, where
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, from_draw, rng


class Pareto(Distribution):
    """A power law, `alpha·scale^alpha / x^(alpha+1)` for x ≥ scale.

    Args:
        scale: Smallest value, above 0.
        alpha: Power, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {
        "alpha": constraints.positive,
        "scale": constraints.positive,
    }
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"scale": 0, "alpha": 0}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        """From `scale` on."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = where(self.alpha > 1, self.alpha, self.alpha * 0 + 2)
        return where(self.alpha > 1, a * self.scale / (a - 1), self._infinity())

    @property
    def mode(self) -> Any:
        return self.scale

    @property
    def variance(self) -> Any:
        a = where(self.alpha > 2, self.alpha, self.alpha * 0 + 3)
        finite = self.scale**2 * a / ((a - 1) ** 2 * (a - 2))
        return where(self.alpha > 2, finite, self._infinity())

    def _infinity(self) -> Any:
        return (self.alpha * 0 + math.inf).detach()

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        waits = from_draw(rng().standard_exponential(shape), self.scale)
        return self.scale * exp(waits / self.alpha)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return log(self.alpha) + self.alpha * log(self.scale) - (self.alpha + 1) * log(value)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 1 - (self.scale / value) ** self.alpha

    def icdf(self, value: Any) -> Any:
        return self.scale / (1 - value) ** (1 / self.alpha)

    def entropy(self) -> Any:
        return log(self.scale / self.alpha) + (1 + 1 / self.alpha)
