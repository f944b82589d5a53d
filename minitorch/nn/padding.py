"""Padding layers."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .functional.checks import Size
from .module import Module


def _widths(padding: Size, axes: int) -> tuple[int, ...]:
    """One number for all sides, or (before, after) for each axis, the last one first."""
    return (padding,) * (2 * axes) if isinstance(padding, int) else tuple(padding)


class _Pad(Module):
    axes: int
    mode: str

    def __init__(self, padding: Size) -> None:
        super().__init__()
        self.padding = _widths(padding, self.axes)

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.pad(input, self.padding, self.mode)
        return y

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Size, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.pad(input, self.padding, self.mode, self.value)
        return y

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Adds elements of a value around the last axis.

    Args:
        padding: How many on both sides, or (left, right).
        value: What they are.
    """

    axes = 1


class ConstantPad2d(_ConstantPad):
    """Adds elements of a value around the last two axes.

    Args:
        padding: How many on all sides, or (left, right, top, bottom).
        value: What they are.
    """

    axes = 2


class ConstantPad3d(_ConstantPad):
    """Adds elements of a value around the last three axes.

    Args:
        padding: How many on all sides, or (left, right, top, bottom, front, back).
        value: What they are.
    """

    axes = 3


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Size) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad):
    """Adds zeros around the last axis; the padding is a number or (left, right)."""

    axes = 1


class ZeroPad2d(_ZeroPad):
    """Adds zeros around the last two axes; the padding as in ConstantPad2d."""

    axes = 2


class ZeroPad3d(_ZeroPad):
    """Adds zeros around the last three axes; the padding as in ConstantPad3d."""

    axes = 3


class _ReflectionPad(_Pad):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPad):
    """Adds the mirror image of f[N, C, L] at its ends, without the ends themselves."""

    axes = 1


class ReflectionPad2d(_ReflectionPad):
    """Adds the mirror image of f[N, C, H, W] at its borders, without the borders themselves."""

    axes = 2


class ReflectionPad3d(_ReflectionPad):
    """Adds the mirror image of f[N, C, D, H, W] at its borders, without the borders themselves."""

    axes = 3


class _ReplicationPad(_Pad):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPad):
    """Repeats the first and last element of f[N, C, L]."""

    axes = 1


class ReplicationPad2d(_ReplicationPad):
    """Repeats the border of f[N, C, H, W]."""

    axes = 2


class ReplicationPad3d(_ReplicationPad):
    """Repeats the border of f[N, C, D, H, W]."""

    axes = 3


class _CircularPad(_Pad):
    mode = "circular"


class CircularPad1d(_CircularPad):
    """Continues f[N, C, L] at its ends with the elements of the other end."""

    axes = 1


class CircularPad2d(_CircularPad):
    """Continues f[N, C, H, W] at its borders with the elements of the other side."""

    axes = 2


class CircularPad3d(_CircularPad):
    """Continues f[N, C, D, H, W] at its borders with the elements of the other side."""

    axes = 3
