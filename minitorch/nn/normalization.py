"""Normalisation layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError, describe
from ..ops.creation import empty, ones, tensor, zeros
from ..ops.inplace import count_up
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .functional.checks import as_tuple
from .linear import positive
from .module import Module


class _NormBase(Module):
    axes: tuple[int, ...]

    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        positive(type(self).__name__, num_features=num_features)
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        where = {"device": device, "dtype": dtype}
        self.weight = Parameter(empty(num_features, **where)) if affine else None
        self.bias = Parameter(empty(num_features, **where)) if affine and bias else None
        tracked = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, **where) if tracked else None)
        self.register_buffer("running_var", ones(num_features, **where) if tracked else None)
        self.register_buffer("num_batches_tracked", tensor(0, device=device) if tracked else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forgets what was seen: mean 0, variance 1."""
        if self.running_mean is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)  # type: ignore[arg-type]
            init.zeros_(self.num_batches_tracked)  # type: ignore[arg-type]

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *others: Any,
    ) -> None:
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, *others
        )
        counter = f"{prefix}num_batches_tracked"  # absent in files from before PyTorch 0.4.1
        if counter in missing_keys and not local_metadata.get("version"):
            missing_keys.remove(counter)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and no statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.axes:
            wanted = " or ".join(map(str, self.axes))
            raise ShapeError(
                f"{type(self).__name__}: the input must have {wanted} axes [N, C, …]. "
                f"Got {describe(input)}."
            )
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            count_up(self.num_batches_tracked)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked.item())
        return F.batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of f[N, C] or f[N, C, L] over the batch.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the new value in the running statistics; None averages all batches.
        affine: Whether there are a weight and a bias for each channel.
        track_running_stats: Keep running statistics for evaluation.
        device: Where the parameters live.
        dtype: Their dtype.
        bias: Whether affine includes the bias.

    Source: Ioffe and Szegedy, Batch Normalization, 2015.
    """

    axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of f[N, C, H, W] over the batch; arguments as in BatchNorm1d."""

    axes = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises each channel of f[N, C, D, H, W] over the batch; arguments as in BatchNorm1d."""

    axes = (5,)


class LayerNorm(Module):
    """Normalises the last axes of each sample.

    Args:
        normalized_shape: Sizes of the axes; a number for the last one only.
        eps: Added to the variance.
        elementwise_affine: Whether there is a weight of that shape.
        bias: Whether there is a bias of that shape as well.
        device: Where the parameters live.
        dtype: Their dtype.

    Source: Ba et al., Layer Normalization, 2016.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        sizes, where = self.normalized_shape, {"device": device, "dtype": dtype}
        self.weight = Parameter(ones(*sizes, **where)) if elementwise_affine else None
        self.bias = Parameter(zeros(*sizes, **where)) if elementwise_affine and bias else None

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        _reset(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


def _reset(weight: Tensor | None, bias: Tensor | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)


class RMSNorm(Module):
    """Divides the last axes by their root mean square.

    Args:
        normalized_shape: Sizes of the axes; a number for the last one only.
        eps: Added to the mean square; default: the machine epsilon.
        elementwise_affine: Whether there is a weight of that shape.
        device: Where the parameters live.
        dtype: Their dtype.

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = as_tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        sizes = self.normalized_shape
        weight = ones(*sizes, device=device, dtype=dtype) if elementwise_affine else None
        self.weight = None if weight is None else Parameter(weight)

    def reset_parameters(self) -> None:
        """Weight 1."""
        _reset(self.weight, None)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Normalises groups of channels of each sample.

    Args:
        num_groups: Number of groups; divides num_channels.
        num_channels: Number of channels (axis 1).
        eps: Added to the variance.
        affine: Whether there are a weight and a bias for each channel.
        device: Where the parameters live.
        dtype: Their dtype.
        bias: Whether affine includes the bias.

    Source: Wu and He, Group Normalization, 2018.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        positive("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ArgumentError(
                f"GroupNorm: num_groups must divide num_channels. "
                f"Got {num_groups} and {num_channels}."
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        where = {"device": device, "dtype": dtype}
        self.weight = Parameter(ones(num_channels, **where)) if affine else None
        self.bias = Parameter(zeros(num_channels, **where)) if affine and bias else None

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        _reset(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )
