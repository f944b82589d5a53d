"""The uniform distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ArgumentError
from ..ops.elementwise import clamp, log
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, from_draw, rng


class Uniform(Distribution):
    """Equal density on the interval [low, high).

    Args:
        low: Lower end.
        high: Upper end, above `low`.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: `high` is not above `low`.
    """

    arg_constraints: ClassVar[Any] = {
        "low": constraints.dependent,
        "high": constraints.dependent,
    }
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"low": 0, "high": 0}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)
        if self._validate_args and not bool((self.low < self.high).all()):
            raise ArgumentError(
                "Uniform: low must be below high everywhere. "
                f"Got low up to {self.low.max().item():g}, high from {self.high.min().item():g}."
            )

    @constraints.dependent_property
    def support(self) -> Any:
        """The interval."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        return (self.high * float("nan")).detach()

    @property
    def stddev(self) -> Any:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Any:
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = from_draw(rng().random(tuple(self._extended_shape(sample_shape))), self.low)
        return self.low + noise * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return log(inside.to(self.low.dtype)) - log(self.high - self.low)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Any) -> Any:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        return log(self.high - self.low)
