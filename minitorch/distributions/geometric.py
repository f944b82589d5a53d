"""The geometric distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..ops.special_functions import xlogy
from . import constraints
from .odds import OddsDistribution
from .utils import (
    binary_cross_entropy,
    broadcast_all,
    from_draw,
    host,
    one_of,
    rng,
)


class Geometric(OddsDistribution):
    """How many trials fail before the first that succeeds, `(1-p)^k·p`.

    Args:
        probs: Probability p of success, above 0.
        logits: Log-odds of success, instead of `probs`.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: Not exactly one of `probs` and `logits` is given, or p is 0.
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints._Range(0.0, 1.0, "(]"),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        one_of("Geometric", probs=probs, logits=logits)
        (given,) = broadcast_all(probs if logits is None else logits)
        vars(self)["probs" if logits is None else "logits"] = given
        super().__init__(given.shape, (), validate_args)

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return (self.probs * 0).detach()

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with np.errstate(all="ignore"):
            waits = np.log1p(-rng().random(tuple(shape))) / np.log1p(-host(self.probs, shape))
        return from_draw(np.floor(np.nan_to_num(waits, posinf=0)), self.probs)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        certain = (probs == 1) & (value == 0)
        below = xlogy(value, 1 - probs.masked_fill(certain, 0.0))
        return below + probs.log()

    def entropy(self) -> Any:
        return binary_cross_entropy(self.logits, self.probs) / self.probs
