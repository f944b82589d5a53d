"""The gamma distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import dtypes
from ..ops.elementwise import clamp, exp, log
from ..ops.special_functions import digamma, lgamma, xlogy
from . import constraints
from .distribution import Distribution
from .incomplete import gammainc, log_standard_gamma
from .utils import broadcast_all


class Gamma(Distribution):
    """The gamma distribution, `rate^a·x^(a-1)·exp(-rate·x)/Γ(a)` with `a = concentration`.

    Samples have implicit gradients with respect to both parameters.

    Args:
        concentration: Shape, above 0.
        rate: Inverse scale, above 0.
        validate_args: As in `Distribution`.

    Source: Implicit Reparameterization Gradients, Figurnov et al., 2018.
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return clamp((self.concentration - 1) / self.rate, min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        drawn = exp(log_standard_gamma(self.concentration.expand(shape)))
        return clamp(drawn / self.rate, min=dtypes.finfo(drawn.dtype).tiny)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return xlogy(a, rate) + xlogy(a - 1, value) - rate * value - lgamma(a)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        a, x = broadcast_all(self.concentration, self.rate * value)
        return gammainc(a, x)

    def entropy(self) -> Any:
        a = self.concentration
        return a - log(self.rate) + lgamma(a) + (1 - a) * digamma(a)
