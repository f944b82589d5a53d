"""The log-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ops.elementwise import exp, expm1, log
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import LOG_2PI


class LogNormal(TransformedDistribution):
    """`exp(x)` of a normal x.

    Args:
        loc: Mean of x.
        scale: Standard deviation of x, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    @property
    def loc(self) -> Any:
        """Mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """Standard deviation of the logarithm."""
        return self.base_dist.scale

    @property
    def mean(self) -> Any:
        return exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self) -> Any:
        return exp(self.loc - self.scale**2)

    @property
    def variance(self) -> Any:
        square = self.scale**2
        return expm1(square) * exp(2 * self.loc + square)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * LOG_2PI + log(self.scale) + self.loc
