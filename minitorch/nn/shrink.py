"""Activation and dropout layers that load on first use."""

from __future__ import annotations

from ..errors import ShapeError, describe
from ..tensor import Tensor
from . import functional as F
from .linear import _Dropout
from .module import Module


class Hardshrink(Module):
    """`x` where |x| > lambd, else 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """`x` moved by lambd towards 0, and 0 if it is nearer than that."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class RReLU(Module):
    """`x` for x > 0, else x times a slope: random in training, else the middle.

    Args:
        lower: Least slope.
        upper: Greatest slope.
        inplace: Write into the memory of the input.
    """

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" * self.inplace)


class Softmax2d(Module):
    """Softmax over the channels of f[N, C, H, W] or f[C, H, W].

    Raises:
        ShapeError: The input has another number of axes.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ShapeError(
                f"Softmax2d: the input must be [N, C, H, W] or [C, H, W]. Got {describe(input)}."
            )
        return F.softmax(input, -3)


class Dropout3d(_Dropout):
    """Dropout of whole channels of f[N, C, D, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """Dropout of whole channels of f[N, C, …] that keeps mean 0 and variance 1 behind SELU."""

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
