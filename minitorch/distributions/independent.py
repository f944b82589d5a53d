"""Batch axes counted as part of the event."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from . import constraints
from .distribution import Distribution
from .utils import sum_rightmost


class Independent(Distribution):
    """A distribution whose last batch axes count as event axes: their log-probabilities are summed.

    Args:
        base_distribution: The distribution.
        reinterpreted_batch_ndims: How many batch axes.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: There are fewer batch axes.
    """

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        n = reinterpreted_batch_ndims
        if n > len(batch):
            raise ArgumentError(
                f"Independent: reinterpreted_batch_ndims must be at most {len(batch)}, the batch "
                f"axes of {type(base_distribution).__name__}. Got {n}."
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n
        split = len(batch) - n
        event = (*batch[split:], *base_distribution.event_shape)
        super().__init__(batch[:split], event, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        n = self.reinterpreted_batch_ndims
        new.base_dist = self.base_dist.expand((*new.batch_shape, *self.event_shape[:n]))
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have gradients."""
        return bool(self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether all values can be listed."""
        return not self.reinterpreted_batch_ndims and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        """The support of the base, with more event axes."""
        n = self.reinterpreted_batch_ndims
        inner = self.base_dist.support
        return constraints.independent(inner, n) if n and inner is not None else inner

    @property
    def mean(self) -> Any:
        return self.base_dist.mean

    @property
    def mode(self) -> Any:
        return self.base_dist.mode

    @property
    def variance(self) -> Any:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Independent: the values of several axes are too many")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
