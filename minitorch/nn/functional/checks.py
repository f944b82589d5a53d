"""Argument rules that several functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dtypes import HALF
from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...tensor import Tensor

Size = int | Sequence[int]

REDUCTIONS = ("mean", "sum", "none")


def pair(name: str, option: str, value: Any, least: int, count: int = 2) -> tuple[int, ...]:
    """`value` as `count` whole numbers; one number stands for all.

    Raises:
        ArgumentError: It is neither one nor `count` whole numbers, or one is below `least`.
    """
    values = tuple(value) if isinstance(value, tuple | list) else (value,) * count
    if len(values) == 1:
        values *= count
    whole = all(isinstance(v, int) and not isinstance(v, bool) and v >= least for v in values)
    if len(values) != count or not whole:
        raise ArgumentError(
            f"{name}: {option} must be a whole number of at least {least}, or {count} of them. "
            f"Got {value!r}."
        )
    return values


def as_tuple(value: Size) -> tuple[int, ...]:
    """One number as a tuple of one."""
    return (value,) if isinstance(value, int) else tuple(value)


def full_float(value: Any) -> Any:
    """A tensor of a half type in float32, in which squares do not overflow; others as they are."""
    half = isinstance(value, Tensor) and value.dtype.numpy in HALF
    return value.float() if half else value


def need_tensor(name: str, what: str, value: Any) -> None:
    """Raises TypeError unless `value` is a Tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: {what} must be a Tensor. Got {type(value).__name__}. "
            "Convert it with minitorch.tensor(...)."
        )


def need_floating(name: str, x: Tensor) -> None:
    """Raises DtypeError unless the input is floating."""
    if not x.dtype.is_floating_point:
        raise DtypeError(f"{name}: the input must be floating. Got {describe(x)}. Use .float().")


def need_one_float(name: str, *tensors: Tensor | None) -> None:
    """Raises DtypeError unless all are floating and of one dtype."""
    given = [t for t in tensors if t is not None]
    first = given[0].dtype
    if not first.is_floating_point or any(t.dtype is not first for t in given):
        shown = ", ".join(describe(t) for t in given)
        raise DtypeError(
            f"{name}: input, weight and bias must have one floating dtype. Got {shown}. "
            "Convert the input with .float() or .to(weight.dtype)."
        )


def batched(name: str, x: Tensor, spatial: int) -> tuple[Tensor, bool]:
    """`x` with a batch axis, and whether it was added.

    Raises:
        ShapeError: `x` has neither `spatial` + 2 nor `spatial` + 1 axes.
    """
    need_tensor(name, "the input", x)
    if x.ndim == spatial + 2:
        return x, False
    if x.ndim == spatial + 1:
        return x.unsqueeze(0), True
    axes = ("NCL", "NCHW", "NCDHW")[spatial - 1]
    raise ShapeError(
        f"{name}: the input must have the axes {axes} or {axes[1:]}. Got {describe(x)}. "
        "Use unsqueeze(1) if the axis of channels is missing."
    )


def check_reduction(name: str, reduction: str) -> None:
    """Raises ArgumentError unless `reduction` is known."""
    if reduction not in REDUCTIONS:
        raise ArgumentError(
            f"{name}: reduction must be 'mean', 'sum' or 'none'. Got {reduction!r}."
        )
