"""The inverse gamma distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import log, where
from ..ops.special_functions import digamma, lgamma
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform


class InverseGamma(TransformedDistribution):
    """`1/x` of a gamma variable x.

    Args:
        concentration: Shape of x, above 0.
        rate: Rate of x, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args)
        super().__init__(base, PowerTransform(-1.0), validate_args)

    @property
    def concentration(self) -> Any:
        """Shape of x."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Any:
        """Rate of x."""
        return self.base_dist.rate

    @property
    def mean(self) -> Any:
        a = where(self.concentration > 1, self.concentration, self.concentration * 0 + 2)
        return where(self.concentration > 1, self.rate / (a - 1), self._infinity())

    @property
    def mode(self) -> Any:
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        a = where(self.concentration > 2, self.concentration, self.concentration * 0 + 3)
        finite = self.rate**2 / ((a - 1) ** 2 * (a - 2))
        return where(self.concentration > 2, finite, self._infinity())

    def _infinity(self) -> Any:
        return (self.rate * 0 + math.inf).detach()

    def entropy(self) -> Any:
        a = self.concentration
        return a + log(self.rate) + lgamma(a) - (1 + a) * digamma(a)
