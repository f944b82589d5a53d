"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ShapeError, describe
from ..ops.elementwise import clamp, where, zeros_like
from ..ops.softmax import softmax
from ..ops.special_functions import digamma, lgamma, xlogy
from . import constraints
from .distribution import Distribution
from .incomplete import log_standard_gamma


class Dirichlet(Distribution):
    """Points of a simplex, with density proportional to `Π xᵢ^(aᵢ-1)`.

    Samples are gamma variables over their sum, with implicit gradients.

    Args:
        concentration: f[..., k], above 0.
        validate_args: As in `Distribution`.

    Raises:
        ShapeError: `concentration` has no axis.
    """

    arg_constraints: ClassVar[Any] = {
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {"concentration": 1}

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ShapeError(
                f"Dirichlet: concentration must be [..., k]. Got {describe(concentration)}."
            )
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Any:
        above = clamp(self.concentration - 1, min=0.0)
        mode = above / above.sum(-1, keepdim=True)
        none = (self.concentration < 1).all(-1, keepdim=True)
        # The density is infinite at several corners; as in PyTorch, the first one stands for them.
        corner = zeros_like(mode.detach())
        corner[..., 0] = 1.0
        return where(none, corner, mode)

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = tuple(self._extended_shape(sample_shape))
        return softmax(log_standard_gamma(self.concentration.expand(shape)), dim=-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a = self.concentration
        return xlogy(a - 1, value).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    def entropy(self) -> Any:
        a = self.concentration
        k, total = a.shape[-1], a.sum(-1)
        return (
            lgamma(a).sum(-1)
            - lgamma(total)
            - (k - total) * digamma(total)
            - ((a - 1.0) * digamma(a)).sum(-1)
        )
