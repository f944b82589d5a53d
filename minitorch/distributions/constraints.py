"""Sets that parameters and samples lie in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.elementwise import abs


class Constraint:
    """A set of values.

    Attributes:
        is_discrete: Whether it is countable.
        event_dim: How many axes of a tensor make one value.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Any) -> Any:
        """For each value (event axes left out) whether it lies in the set."""
        raise NotImplementedError(f"{type(self).__name__} must override check()")

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_")


class _Dependent(Constraint):
    """A set that depends on the distribution; as a decorator, a property that gives it."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete = is_discrete
        self.event_dim = event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> _Dependent:
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Any) -> Any:
        raise ValueError("constraints.dependent: it is known only for a distribution's instance")


class dependent_property(property, _Dependent):
    """A property that gives a constraint."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Any = None, **options: Any) -> Any:
        """The property of `fn` with the same options."""
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint is known only for an instance."""
    return isinstance(constraint, _Dependent)


class _Simple(Constraint):
    """A set given by a function."""

    def __init__(
        self, name: str, test: Callable[[Any], Any], event_dim: int = 0, is_discrete: bool = False
    ) -> None:
        self.name = name
        self.check = test  # type: ignore[assignment, method-assign]
        self.event_dim = event_dim
        self.is_discrete = is_discrete

    def __repr__(self) -> str:
        return self.name


class independent(Constraint):
    """Values of which `reinterpreted_batch_ndims` more axes make one."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        return result.flatten(-n).all(-1) if n else result

    def __repr__(self) -> str:
        return f"independent({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class _Range(Constraint):
    """Values between bounds; `closed` says which ends belong to it."""

    def __init__(self, lower: Any = None, upper: Any = None, closed: str = "[]") -> None:
        self.lower_bound = lower
        self.upper_bound = upper
        self.closed = closed

    def check(self, value: Any) -> Any:
        low, high = self.lower_bound, self.upper_bound
        inside = value == value
        if low is not None:
            inside = inside & (value >= low if self.closed[0] == "[" else value > low)
        if high is not None:
            inside = inside & (value <= high if self.closed[1] == "]" else value < high)
        return inside

    def __repr__(self) -> str:
        parts = []
        if self.lower_bound is not None:
            parts.append(f"{'≥' if self.closed[0] == '[' else '>'} {_short(self.lower_bound)}")
        if self.upper_bound is not None:
            parts.append(f"{'≤' if self.closed[1] == ']' else '<'} {_short(self.upper_bound)}")
        return "values " + " and ".join(parts)


def _short(bound: Any) -> str:
    return f"{float(bound):g}" if getattr(bound, "ndim", 0) == 0 else "the bounds"


class interval(_Range):
    """From `lower_bound` to `upper_bound`, both included."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)


class half_open_interval(_Range):
    """From `lower_bound`, included, to `upper_bound`, not included."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound, "[)")


class greater_than(_Range):
    """Above `lower_bound`."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound, None, "(]")


class greater_than_eq(_Range):
    """At least `lower_bound`."""

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound, None)


class less_than(_Range):
    """Below `upper_bound`."""

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(None, upper_bound, "[)")


class integer_interval(_Range):
    """Whole numbers from `lower_bound` to `upper_bound`, both included."""

    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)

    def __repr__(self) -> str:
        return "whole " + super().__repr__()


class _Counts(Constraint):
    """Numbers of events that add up to at most `upper_bound`."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return f"counts ≥ 0 that add up to at most {_short(self.upper_bound)}"


class _IntegerAbove(integer_interval):
    def __init__(self, lower_bound: int) -> None:
        _Range.__init__(self, lower_bound, None)


_TOLERANCE = 1e-6


def _is_simplex(value: Any) -> Any:
    return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < _TOLERANCE)


def _is_one_hot(value: Any) -> Any:
    return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


def _is_square(value: Any) -> Any:
    every = ((value == value) | (value != value)).all(-1).all(-1)
    return every & (value.shape[-1] == value.shape[-2])


def _is_lower_triangular(value: Any) -> Any:
    return (value.tril() == value).all(-1).all(-1)


def _is_lower_cholesky(value: Any) -> Any:
    return _is_lower_triangular(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


def _is_symmetric(value: Any) -> Any:
    difference = abs(value - value.transpose(-1, -2))
    return (difference <= _TOLERANCE + 1e-5 * abs(value)).all(-1).all(-1)


def _is_positive_semidefinite(value: Any) -> Any:
    from ..linalg import eigvalsh

    return _is_symmetric(value) & (eigvalsh(value.detach()) >= 0).all(-1)


def _is_positive_definite(value: Any) -> Any:
    from ..linalg import eigvalsh

    return _is_symmetric(value) & (eigvalsh(value.detach()) > 0).all(-1)


dependent = _Dependent()
boolean = _Simple("0 or 1", lambda v: (v == 0) | (v == 1), is_discrete=True)
real = _Simple("real numbers, not nan", lambda v: v == v)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
nonnegative_integer = _IntegerAbove(0)
positive_integer = _IntegerAbove(1)
simplex = _Simple("vectors ≥ 0 that sum to 1", _is_simplex, 1)
one_hot = _Simple("vectors with a single 1", _is_one_hot, 1, is_discrete=True)
square = _Simple("square matrices", _is_square, 2)
symmetric = _Simple("symmetric matrices", _is_symmetric, 2)
lower_triangular = _Simple("lower triangular matrices", _is_lower_triangular, 2)
lower_cholesky = _Simple(
    "lower triangular matrices with a positive diagonal", _is_lower_cholesky, 2
)
positive_semidefinite = _Simple("positive semidefinite matrices", _is_positive_semidefinite, 2)
positive_definite = _Simple("positive definite matrices", _is_positive_definite, 2)
multinomial = _Counts
