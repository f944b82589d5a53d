"""Mixtures of distributions of one kind."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError
from ..ops.softmax import log_softmax, logsumexp
from . import constraints
from .categorical import Categorical
from .distribution import Distribution


class MixtureSameFamily(Distribution):
    """One of k components, chosen by a categorical distribution.

    Args:
        mixture_distribution: Categorical over k classes.
        component_distribution: A batch of components whose last batch axis has length k.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: The mixture is not categorical.
        ShapeError: The batches do not fit.
    """

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ArgumentError(
                "MixtureSameFamily: the first argument chooses the component and must be a "
                f"Categorical. Got {type(mixture_distribution).__name__}."
            )
        batch = component_distribution.batch_shape
        classes = mixture_distribution.param_shape[-1]
        weights = mixture_distribution.batch_shape
        if not batch or batch[-1] != classes or (weights and weights != batch[:-1]):
            raise ShapeError(
                "MixtureSameFamily: the components' batch must be the mixture's batch and an axis "
                f"of its {classes} classes. Got {list(batch)} for a mixture of batch "
                f"{list(weights)}."
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        k = self._mixture_distribution.param_shape[-1]
        new._component_distribution = self._component_distribution.expand((*new.batch_shape, k))
        new._mixture_distribution = self._mixture_distribution.expand(new.batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        """The components' support, where it is the same for all; unchecked otherwise."""
        return None

    @property
    def mixture_distribution(self) -> Categorical:
        """What chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Any:
        """The probabilities, with an axis for each event axis."""
        probs = self._mixture_distribution.probs
        return probs.reshape((*probs.shape, *([1] * len(self._event_shape))))

    def _axis(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Any:
        return (self._weights() * self._component_distribution.mean).sum(self._axis())

    @property
    def variance(self) -> Any:
        weights, axis = self._weights(), self._axis()
        inside = (weights * self._component_distribution.variance).sum(axis)
        apart = self._component_distribution.mean - self.mean.unsqueeze(axis)
        return inside + (weights * apart**2).sum(axis)

    def sample(self, sample_shape: Any = ()) -> Any:
        chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        values = self._component_distribution.sample(sample_shape)
        axis = chosen.ndim
        events = len(self._event_shape)
        index = chosen.reshape((*chosen.shape, *([1] * (1 + events))))
        index = index.expand((*chosen.shape, 1, *self._event_shape))
        return values.gather(axis, index).squeeze(axis)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        inner = self._component_distribution.log_prob(value.unsqueeze(self._axis()))
        return logsumexp(inner + log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def cdf(self, value: Any) -> Any:
        inner = self._component_distribution.cdf(value.unsqueeze(self._axis()))
        return (inner * self._mixture_distribution.probs).sum(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
