"""The von Mises distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ops.elementwise import cos, log
from ..ops.special_functions import i0e, i1e
from . import constraints
from .distribution import Distribution
from .utils import LOG_2PI, broadcast_all, from_draw, host, rng


class VonMises(Distribution):
    """Angles around `loc`, with density proportional to `exp(concentration·cos(x - loc))`.

    Args:
        loc: Mean angle in radians.
        concentration: Above 0; large for narrow ones.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real
    _tensors: ClassVar[dict[str, int]] = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        angles = rng().vonmises(host(self.loc, shape), host(self.concentration, shape))
        return from_draw(angles, self.loc)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        apart = cos(value - self.loc) - 1
        return self.concentration * apart - LOG_2PI - log(i0e(self.concentration))
