"""Distributions of maps of random variables."""

from __future__ import annotations

from typing import Any

from ..autograd import no_grad
from ..errors import ArgumentError, ShapeError
from ..ops.elementwise import where
from ..size import Size
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost


class TransformedDistribution(Distribution):
    """The distribution of `y = f(x)` for x of a base distribution.

    `log p(y) = log p(x) - log |det dy/dx|`.

    Args:
        base_distribution: The distribution of x.
        transforms: The map, or several, the first one first.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: A map is no Transform.
        ShapeError: The maps need more axes than x has.
    """

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Any,
        validate_args: bool | None = None,
    ) -> None:
        maps = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(t, Transform) for t in maps):
            raise ArgumentError(
                "TransformedDistribution: transforms must be a Transform or a list of them. "
                f"Got {[type(t).__name__ for t in maps]}."
            )
        self.transforms: list[Transform] = maps
        shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        whole = ComposeTransform(maps)
        if len(shape) < whole.domain.event_dim:
            raise ShapeError(
                f"TransformedDistribution: the map needs {whole.domain.event_dim} axes. "
                f"Got a base of shape {list(shape)}. Use expand()."
            )
        base_shape = shape
        out_shape = tuple(whole.forward_shape(Size(shape)))
        base_shape = tuple(whole.inverse_shape(Size(out_shape)))
        if base_shape != shape:
            batch = base_shape[: len(base_shape) - len(base_distribution.event_shape)]
            base_distribution = base_distribution.expand(batch)
        more = whole.domain.event_dim - len(base_distribution.event_shape)
        if more > 0:
            base_distribution = Independent(base_distribution, more)
        self.base_dist: Any = base_distribution
        events = max(
            whole.codomain.event_dim,
            len(base_distribution.event_shape) + whole.codomain.event_dim - whole.domain.event_dim,
        )
        cut = len(out_shape) - events
        super().__init__(out_shape[:cut], out_shape[cut:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape = Size((*new.batch_shape, *self.event_shape))
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        """Whether samples have gradients."""
        return bool(self.base_dist.has_rsample)

    @constraints.dependent_property
    def support(self) -> Any:
        """What the last map gives."""
        if not self.transforms:
            return self.base_dist.support
        inner = self.transforms[-1].codomain
        more = len(self.event_shape) - inner.event_dim
        return constraints.independent(inner, more) if more > 0 else inner

    def sample(self, sample_shape: Any = ()) -> Any:
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for t in self.transforms:
                x = t(x)
        return x

    def rsample(self, sample_shape: Any = ()) -> Any:
        x = self.base_dist.rsample(sample_shape)
        for t in self.transforms:
            x = t(x)
        return x

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        dims = len(self.event_shape)
        total: Any = 0.0
        y = value
        for t in reversed(self.transforms):
            x = t._inv_call(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            term = t.log_abs_det_jacobian(x, y)
            total = total - sum_rightmost(term, dims - t.domain.event_dim)
            y = x
        inner = self.base_dist.log_prob(y)
        return total + sum_rightmost(inner, dims - len(self.base_dist.event_shape))

    def _sign(self) -> Any:
        sign: Any = 1
        for t in self.transforms:
            sign = sign * t.sign
        return sign

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        for t in reversed(self.transforms):
            value = t._inv_call(value)
        return _mirrored(self.base_dist.cdf(value), self._sign())

    def icdf(self, value: Any) -> Any:
        value = self.base_dist.icdf(_mirrored(value, self._sign()))
        for t in self.transforms:
            value = t(value)
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.transforms})"


def _mirrored(value: Any, sign: Any) -> Any:
    """The probability, from the other side where the map falls."""
    if isinstance(sign, int):
        return value if sign == 1 else 1 - value
    return where(sign > 0, value, 1 - value)
