"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.creation import full_like
from ..ops.elementwise import where
from . import constraints
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class HalfCauchy(TransformedDistribution):
    """`|x|` of a Cauchy variable x with median 0; it has no mean.

    Args:
        scale: Scale of x, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0.0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args)
        if self._validate_args:
            vars(self)["scale"] = base.scale
            self._check_parameter("scale", constraints.positive)
            del vars(self)["scale"]

    @property
    def scale(self) -> Any:
        """Scale of x."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return (self.scale * 0 + math.inf).detach()

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    @property
    def mode(self) -> Any:
        return (self.scale * 0).detach()

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        doubled = self.base_dist.log_prob(value) + math.log(2)
        return where(value >= 0, doubled, full_like(doubled.detach(), -math.inf))

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Any) -> Any:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self.base_dist.entropy() - math.log(2)
