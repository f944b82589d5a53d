"""Maps between random variables, with their inverses and the logarithms of their volume change."""

from __future__ import annotations

import math
from typing import Any

from ..errors import ShapeError
from ..nn.functional import softplus
from ..ops.elementwise import abs, clamp, exp, expm1, log, log1p, neg, sigmoid, sign, tanh, where
from ..ops.softmax import softmax
from ..size import Size
from ..tensor import Tensor
from . import constraints
from .composition import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    identity_transform,
)
from .utils import clamp_probs, sum_rightmost


class ReshapeTransform(Transform):
    """Gives the event another shape.

    Args:
        in_shape: Shape of an event of x.
        out_shape: Shape of an event of y.
        cache_size: As in `Transform`.
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ShapeError(
                "ReshapeTransform: both shapes must have as many elements. "
                f"Got {list(self.in_shape)} and {list(self.out_shape)}."
            )
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        batch = x.shape[: x.ndim - len(self.in_shape)]
        return x.reshape((*batch, *self.out_shape))

    def _inverse(self, y: Any) -> Any:
        batch = y.shape[: y.ndim - len(self.out_shape)]
        return y.reshape((*batch, *self.in_shape))

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(tuple(x.shape[: x.ndim - len(self.in_shape)]))

    def forward_shape(self, shape: Any) -> Any:
        return Size((*shape[: len(shape) - len(self.in_shape)], *self.out_shape))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*shape[: len(shape) - len(self.out_shape)], *self.in_shape))


class ExpTransform(Transform):
    """`y = exp(x)`."""

    bijective = True
    codomain: Any = constraints.positive
    sign = 1

    def _call(self, x: Any) -> Any:
        return exp(x)

    def _inverse(self, y: Any) -> Any:
        return log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class PowerTransform(Transform):
    """`y = x^exponent` for positive x.

    Args:
        exponent: A number or a tensor.
        cache_size: As in `Transform`.
    """

    bijective = True
    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return sign(self.exponent) if isinstance(self.exponent, Tensor) else _sign(self.exponent)

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return log(abs(self.exponent * y / x))

    def forward_shape(self, shape: Any) -> Any:
        return _broadcast(shape, self.exponent)

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    def __hash__(self) -> int:
        return hash(type(self))


class SigmoidTransform(ExpTransform):
    """`y = 1/(1 + exp(-x))`."""

    codomain = constraints.unit_interval

    def _call(self, x: Any) -> Any:
        return clamp_probs(sigmoid(x))

    def _inverse(self, y: Any) -> Any:
        y = clamp_probs(y)
        return log(y) - log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(ExpTransform):
    """`y = log(1 + exp(x))`."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return softplus(x)

    def _inverse(self, y: Any) -> Any:
        return log(neg(expm1(-y))) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -softplus(-x)


class TanhTransform(ExpTransform):
    """`y = tanh(x)`; with `cache_size=1` the inverse near ±1 is exact."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Any) -> Any:
        return tanh(x)

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(Transform):
    """`y = |x|`; the inverse is the positive x."""

    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return abs(x)

    def _inverse(self, y: Any) -> Any:
        return y

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    def __hash__(self) -> int:
        return hash(type(self))


class AffineTransform(Transform):
    """`y = loc + scale·x`.

    Args:
        loc: A number or a tensor.
        scale: A number or a tensor, not 0.
        event_dim: How many axes make one value.
        cache_size: As in `Transform`.
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self) -> Any:
        return sign(self.scale) if isinstance(self.scale, Tensor) else _sign(self.scale)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        scale = self.scale
        if isinstance(scale, Tensor):
            result = log(abs(scale))
        else:
            result = x.new_full((), math.log(math.fabs(scale)))
        dims = self.event_dim
        if dims:
            result = result.expand(tuple(x.shape)) if result.ndim < x.ndim else result
            result = sum_rightmost(result, dims)
        return result.expand(tuple(x.shape[: x.ndim - dims]))

    def forward_shape(self, shape: Any) -> Any:
        return _broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _same(self.loc, other.loc)
            and _same(self.scale, other.scale)
        )

    def __hash__(self) -> int:
        return hash(type(self))


class SoftmaxTransform(Transform):
    """`y = softmax(x)` along the last axis; the inverse is `log(y)`."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        return softmax(x, dim=-1)

    def _inverse(self, y: Any) -> Any:
        return log(y)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def __hash__(self) -> int:
        return hash(type(self))


class StickBreakingTransform(Transform):
    """Real vectors to points of a simplex with one more element: parts broken off a stick."""

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        z = clamp_probs(sigmoid(x - log(self._left(x))))
        rest = (1 - z).cumprod(-1)
        ones = x.new_ones((*x.shape[:-1], 1))
        from ..ops.joining import cat

        return cat([z, ones], -1) * cat([ones, rest], -1)

    def _inverse(self, y: Any) -> Any:
        head = y[..., :-1]
        rest = clamp(1 - head.cumsum(-1), min=1e-30)
        return log(head) - log(rest) + log(self._left(head))

    def _left(self, x: Any) -> Any:
        """How many parts are left at each place."""
        ones = x.new_ones(tuple(x.shape[-1:]))
        return x.shape[-1] + 1 - ones.cumsum(-1)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - log(self._left(x))
        log_sigmoid = -softplus(-x)
        return (-x + log_sigmoid + log(y[..., :-1])).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        return Size((*shape[:-1], shape[-1] - 1))


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return a is b or bool(where(a == b, 1, 0).all())
    return bool(a == b)


def _broadcast(shape: Any, *values: Any) -> Any:
    from ..ops.shape import broadcast_shapes

    return broadcast_shapes(tuple(shape), *[tuple(getattr(v, "shape", ())) for v in values])


__all__ = [
    "AbsTransform",
    "AffineTransform",
    "ComposeTransform",
    "ExpTransform",
    "IndependentTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
