"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from .. import backend, dtypes
from ..errors import ShapeError, describe
from ..ops.creation import arange
from ..ops.elementwise import clamp
from ..ops.primitive import wrap
from . import constraints
from .distribution import Distribution
from .utils import (
    draw_classes,
    enumerated,
    lazy_property,
    logits_to_probs,
    normalised,
    one_of,
    probs_to_logits,
)


class Categorical(Distribution):
    """One of k classes, numbered from 0.

    Args:
        probs: f[..., k], weights ≥ 0 of the classes; need not sum to 1.
        logits: f[..., k], unnormalised log-probabilities, instead of `probs`.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: Not exactly one of `probs` and `logits` is given.
        ShapeError: It has no axis.

    >>> mt.distributions.Categorical(probs=mt.tensor([1.0, 3.0])).probs.tolist()
    [0.25, 0.75]
    """

    arg_constraints: ClassVar[Any] = {
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True
    _tensors: ClassVar[dict[str, int]] = {"probs": 1, "logits": 1}

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        one_of("Categorical", probs=probs, logits=logits)
        given = probs if logits is None else logits
        if given.ndim < 1:
            raise ShapeError(
                f"Categorical: probabilities must be [..., classes]. Got {describe(given)}."
            )
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = normalised(logits)
        self._num_events = given.shape[-1]
        super().__init__(given.shape[:-1], (), validate_args)

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        """The class numbers."""
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Any:
        """Log-probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        """The shape of the probabilities."""
        return (self.probs if "probs" in vars(self) else self.logits).shape

    @property
    def mean(self) -> Any:
        return self._undefined()

    @property
    def variance(self) -> Any:
        return self._undefined()

    def _undefined(self) -> Any:
        return (self.probs.sum(-1) * math.nan).detach()

    @property
    def mode(self) -> Any:
        return self.probs.argmax(-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        found = draw_classes(self.probs, sample_shape)
        return wrap(backend.from_host(found.astype(np.int64), self.probs.device))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        index = value.long().unsqueeze(-1)
        shape = np.broadcast_shapes(tuple(index.shape), (*self._batch_shape, 1))
        logits = self.logits.expand((*shape[:-1], self._num_events))
        return logits.gather(-1, index.expand(shape)).squeeze(-1)

    def entropy(self) -> Any:
        low = dtypes.finfo(self.logits.dtype).min
        return -(clamp(self.logits, min=low) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = arange(self._num_events, device=self.probs.device)
        return enumerated(values, self._batch_shape, expand)
