"""The base of all distributions."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from ..autograd import no_grad
from ..errors import ArgumentError, ShapeError, describe
from ..ops.elementwise import exp, sqrt
from ..size import Size
from ..tensor import Tensor
from . import constraints
from .utils import as_size


class Distribution:
    """A probability distribution, or a batch of them.

    A subclass names its tensors in `_tensors`, each with the number of axes that belong to one
    event, and overrides `rsample` or `sample`, and `log_prob`.

    Args:
        batch_shape: Shape of the batch.
        event_shape: Shape of one event.
        validate_args: Check parameters and values; default True.

    Attributes:
        arg_constraints: For each parameter the constraint that it satisfies.
        support: The constraint that samples satisfy.
        has_rsample: Whether samples have gradients with respect to the parameters.

    Raises:
        ArgumentError: A parameter breaks its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[Any] = {}
    support: Any = None
    _tensors: ClassVar[dict[str, int]] = {}
    _validate_args = True

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            for name, constraint in self.arg_constraints.items():
                if name in vars(self) and not constraints.is_dependent(constraint):
                    self._check_parameter(name, constraint)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check their parameters and values."""
        Distribution._validate_args = bool(value)

    def _check_parameter(self, name: str, constraint: Any) -> None:
        value = vars(self)[name]
        if not bool(constraint.check(value).all()):
            raise ArgumentError(
                f"{type(self).__name__}: the parameter {name} must satisfy {constraint}. "
                f"Got {describe(value)} with {_shown(value)}. Correct it, or pass "
                "validate_args=False."
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The same distribution with a batch of this shape; parameters are views.

        Args:
            batch_shape: A shape that the present one broadcasts to.
        """
        new: Any = self.__new__(type(self)) if _instance is None else _instance
        vars(new).update(vars(self))
        shape = Size(batch_shape)
        for name, axes in self._tensors.items():
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                event = tuple(value.shape)[value.ndim - axes :]
                setattr(new, name, value.expand((*shape, *event)))
        new._batch_shape = shape
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one event."""
        return self._event_shape

    @property
    def mean(self) -> Any:
        """The expectation."""
        raise NotImplementedError(f"{type(self).__name__} has no mean here")

    @property
    def mode(self) -> Any:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__} has no mode here")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no variance here")

    @property
    def stddev(self) -> Any:
        """The root of the variance."""
        return sqrt(self.variance)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draws samples without gradients.

        Args:
            sample_shape: Shape of independent draws.

        Returns:
            [*sample_shape, *batch_shape, *event_shape].
        """
        with no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draws samples whose gradients reach the parameters; arguments as in `sample`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no reparameterised samples. Use sample() and log_prob()."
        )

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density or probability at `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob here")

    def cdf(self, value: Any) -> Any:
        """The probability of what is at most `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf here")

    def icdf(self, value: Any) -> Any:
        """The value below which a part `value` of the probability lies."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf here")

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution, along axis 0."""
        raise NotImplementedError(f"{type(self).__name__} has no finite support")

    def entropy(self) -> Any:
        """The entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy here")

    def perplexity(self) -> Any:
        """`exp(entropy)`."""
        return exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*as_size(sample_shape), *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """Raises unless `value` has the shape of a sample and lies in the support."""
        kind = type(self).__name__
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{kind}: a value must be a tensor. Got {type(value).__name__}. "
                "Convert it with minitorch.tensor(...)."
            )
        events = len(self._event_shape)
        shape = tuple(value.shape)
        fits = shape[len(shape) - events :] == tuple(self._event_shape) and all(
            i in (1, j) or j == 1
            for i, j in zip(
                reversed(shape), reversed((*self._batch_shape, *self._event_shape)), strict=False
            )
        )
        if not fits:
            raise ShapeError(
                f"{kind}: a value must end in event_shape {list(self._event_shape)} and broadcast "
                f"with batch_shape {list(self._batch_shape)}. Got {describe(value)}."
            )
        if self.support is not None and not bool(self.support.check(value).all()):
            raise ArgumentError(
                f"{kind}: a value must lie in the support, {self.support}. Got {describe(value)} "
                f"with {_shown(value)}. Correct it, or pass validate_args=False."
            )

    def __repr__(self) -> str:
        parts = []
        for name in self.arg_constraints:
            value = vars(self).get(name)
            if isinstance(value, Tensor):
                shown = value.detach() if value.numel() == 1 else value.shape
                parts.append(f"{name}: {shown}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _shown(value: Any) -> str:
    """The range of a tensor's values, for messages."""
    if not value.numel():
        return "no values"
    if bool((value != value).any()):
        return "nan"
    return f"values from {value.min().item():g} to {value.max().item():g}"
