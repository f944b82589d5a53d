"""What every map between random variables has, and maps made of maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from . import constraints
from .utils import sum_rightmost


class Transform:
    """A differentiable map `y = f(x)`.

    A subclass overrides `_call`, `_inverse` and `log_abs_det_jacobian`.

    Args:
        cache_size: 1 keeps the last pair (x, y), so that the inverse of a y that was just made is
            its x, exactly; 0 keeps none.

    Attributes:
        domain: The constraint of x.
        codomain: The constraint of y.
        bijective: Whether every y has one x.
        sign: 1 or -1 for monotone maps of numbers.
    """

    bijective = False
    domain: Any = constraints.real
    codomain: Any = constraints.real

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"Transform: cache_size must be 0 or 1. Got {cache_size!r}.")
        self._cache_size = cache_size
        self._pair: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many axes of x make one value, where y has as many."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ArgumentError(
            f"{type(self).__name__}: x and y have different numbers of event axes. "
            "Use domain.event_dim or codomain.event_dim."
        )

    @property
    def sign(self) -> Any:
        """1 where the map rises, -1 where it falls."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    @property
    def inv(self) -> Transform:
        """The inverse map."""
        return _Inverse(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same map with a cache."""
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        new._cache_size, new._pair = cache_size, (None, None)
        return new

    def __call__(self, x: Any) -> Any:
        """`f(x)`."""
        if not self._cache_size:
            return self._call(x)
        if x is not self._pair[0]:
            self._pair = x, self._call(x)
        return self._pair[1]

    def _inv_call(self, y: Any) -> Any:
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._pair[1]:
            self._pair = self._inverse(y), y
        return self._pair[0]

    def _call(self, x: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must override _call()")

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """`log |det dy/dx|`, without the event axes."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of y for x of this shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of x for y of this shape."""
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _Inverse(Transform):
    """The inverse of another map."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform
        self.bijective = transform.bijective
        self.domain, self.codomain = transform.codomain, transform.domain

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Inverse) and self._inv == other._inv

    def __hash__(self) -> int:
        return hash(self._inv) + 1

    def __repr__(self) -> str:
        return f"inverse of {self._inv!r}"


class ComposeTransform(Transform):
    """Several maps, the first one first.

    Args:
        parts: The maps.
        cache_size: As in `Transform`, for each part.
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) if cache_size else part for part in parts]
        self.bijective = all(part.bijective for part in parts)
        self.domain = constraints.real
        self.codomain = constraints.real
        if self.parts:
            self.domain = _widened(self.parts, "domain")
            self.codomain = _widened(self.parts, "codomain")

    @property
    def sign(self) -> Any:
        total: Any = 1
        for part in self.parts:
            total = total * part.sign
        return total

    @property
    def inv(self) -> Transform:
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def with_cache(self, cache_size: int = 1) -> Transform:
        return ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return x * 0
        total: Any = 0
        dims = self.domain.event_dim
        for i, part in enumerate(self.parts):
            out = y if i == len(self.parts) - 1 else part(x)
            term = part.log_abs_det_jacobian(x, out)
            total = total + sum_rightmost(term, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = out
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(tuple(self.parts))

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


def _widened(parts: list[Transform], side: str) -> Any:
    """The domain or codomain of a chain, with the event axes that any part needs."""
    ordered = parts[::-1] if side == "domain" else parts
    ends = ("codomain", "domain") if side == "domain" else ("domain", "codomain")
    last = getattr(ordered[-1], side)
    dims = getattr(ordered[0], ends[0]).event_dim
    for part in ordered:
        here, there = getattr(part, ends[0]).event_dim, getattr(part, ends[1]).event_dim
        dims = max(dims, here) + there - here
    dims = max(dims, last.event_dim)
    return constraints.independent(last, dims - last.event_dim) if dims > last.event_dim else last


class IndependentTransform(Transform):
    """A map of which `reinterpreted_batch_ndims` more axes make one value.

    Args:
        base_transform: The map.
        reinterpreted_batch_ndims: How many axes.
        cache_size: As in `Transform`.
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform
        self.reinterpreted_batch_ndims = n = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.domain = constraints.independent(base_transform.domain, n)
        self.codomain = constraints.independent(base_transform.codomain, n)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(result, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


identity_transform = ComposeTransform([])
