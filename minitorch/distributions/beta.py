"""The beta distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..ops.joining import stack
from . import constraints
from .dirichlet import Dirichlet
from .distribution import Distribution
from .utils import broadcast_all


class Beta(Distribution):
    """The beta distribution on [0, 1], with density proportional to `x^(a-1)·(1-x)^(b-1)`.

    Args:
        concentration1: a, above 0.
        concentration0: b, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        pair = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(pair, validate_args=False)
        super().__init__(self._dirichlet.batch_shape, (), validate_args)
        if self._validate_args:
            for name in ("concentration1", "concentration0"):
                vars(self)[name] = getattr(self, name)
                self._check_parameter(name, constraints.positive)
                del vars(self)[name]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._dirichlet = self._dirichlet.expand(batch_shape)
        return new

    @property
    def concentration1(self) -> Any:
        """a."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """b."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a * b / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._dirichlet.log_prob(stack([value, 1 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()
