"""Rules that all losses share: shapes, width within autocast, PyTorch's old arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ...autograd.mode import state
from ...errors import ShapeError, describe
from ...tensor import Tensor
from .checks import REDUCTIONS, check_reduction, full_float, need_tensor

F = TypeVar("F", bound=Callable[..., Any])


def full_width(loss: F) -> F:
    """`loss` computed in float32 within autocast, since half types overflow and round sums."""

    @functools.wraps(loss)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.autocast is not None:
            args = tuple(full_float(a) for a in args)
            kwargs = {key: full_float(a) for key, a in kwargs.items()}
        return loss(*args, **kwargs)

    return call  # type: ignore[return-value]


def same_shape(name: str, input: Tensor, target: Tensor) -> None:
    need_tensor(name, "the input", input)
    need_tensor(name, "the target", target)
    if input.shape == target.shape:
        return
    a, b = tuple(input.shape), tuple(target.shape)
    fix = "Reshape one of them."
    if a == (*b, 1):
        fix = "Did you mean input.squeeze(-1)?"
    elif b == (*a, 1):
        fix = "Did you mean target.squeeze(-1)?"
    raise ShapeError(
        f"{name}: input and target must have one shape; a loss does not broadcast. "
        f"Got {describe(input)} and {describe(target)}. {fix}"
    )


def check_factor(name: str, what: str, factor: Tensor | None, input: Tensor) -> None:
    """Raises ShapeError if `factor` would make the loss larger than the input."""
    if factor is None:
        return
    a, b = tuple(factor.shape), tuple(input.shape)
    if len(a) <= len(b) and all(n in (1, m) for n, m in zip(a[::-1], b[::-1], strict=False)):
        return
    fix = f"Did you mean {what}.squeeze(-1)?" if a == (*b, 1) else f"Reshape {what}."
    raise ShapeError(
        f"{name}: {what} must have the shape of the input, or 1 where it is repeated. "
        f"Got {describe(factor)} and {describe(input)}. {fix}"
    )


def reduction_of(
    name: str, size_average: bool | None, reduce: bool | None, reduction: str, *more: str
) -> str:
    """The reduction that PyTorch's old arguments ask for, or `reduction` where both are None.

    Raises:
        ArgumentError: The reduction is unknown.
    """
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in REDUCTIONS and reduction not in more:
        check_reduction(name, reduction)
    return reduction
