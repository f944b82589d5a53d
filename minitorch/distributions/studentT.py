"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..ops.elementwise import log, log1p, rsqrt, where
from ..ops.special_functions import digamma, lgamma
from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import broadcast_all, normal_like


class StudentT(Distribution):
    """A normal variable over the root of a chi-squared one: heavy tails for small `df`.

    Args:
        df: Degrees of freedom, above 0.
        loc: Centre.
        scale: Scale, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"df": 0, "loc": 0, "scale": 0}

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return where(self.df <= 1, self.loc.detach() * math.nan, self.loc)

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        df = self.df
        wide = where(df > 2, df, df * 0 + 3)
        finite = self.scale**2 * wide / (wide - 2)
        infinite = finite.detach() * 0 + math.inf
        return where(df <= 1, infinite * 0, where(df > 2, finite, infinite))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        z = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * (normal_like(shape, self.df) * rsqrt(z / self.df))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        df = self.df
        y = (value - self.loc) / self.scale
        size = log(self.scale) + 0.5 * log(df) + 0.5 * math.log(math.pi)
        size = size + lgamma(0.5 * df) - lgamma(0.5 * (df + 1.0))
        return -0.5 * (df + 1.0) * log1p(y**2.0 / df) - size

    def entropy(self) -> Any:
        df = self.df
        log_beta = lgamma(0.5 * df) + math.lgamma(0.5) - lgamma(0.5 * (df + 1))
        slope = digamma(0.5 * (df + 1)) - digamma(0.5 * df)
        return log(self.scale) + 0.5 * (df + 1) * slope + 0.5 * log(df) + log_beta
