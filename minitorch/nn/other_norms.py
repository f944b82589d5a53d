"""Normalisation of samples, across channels, and over several processes."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError, describe
from ..tensor import Tensor
from . import functional as F
from .module import Module
from .normalization import _BatchNorm, _NormBase


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Tensor) -> Tensor:
        name, (single, batch) = type(self).__name__, self.axes
        if input.ndim not in (single, batch):
            raise ShapeError(
                f"{name}: the input must have {batch} axes [N, C, …], or {single} without the "
                f"batch. Got {describe(input)}."
            )
        channels = input.shape[input.ndim - single]
        if channels != self.num_features and self.affine:
            raise ArgumentError(
                f"{name}: the input must have {self.num_features} channels. Got {describe(input)}. "
                f"Set num_features={channels}."
            )
        x = input.unsqueeze(0) if input.ndim == single else input
        y = F.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return y.squeeze(0) if input.ndim == single else y


class InstanceNorm1d(_InstanceNorm):
    """Normalises each channel of each sample of f[N, C, L] or f[C, L].

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the new value in the running statistics.
        affine: Whether there are a weight and a bias for each channel.
        track_running_stats: Keep running statistics and use them in evaluation.
        device: Where the parameters live.
        dtype: Their dtype.
        bias: Whether affine includes the bias.

    Source: Ulyanov et al., Instance Normalization, 2016.
    """

    axes = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each sample of f[N, C, H, W]; arguments as in InstanceNorm1d."""

    axes = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each sample of f[N, C, D, H, W]; see InstanceNorm1d."""

    axes = (4, 5)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm for inputs with any number of axes; on one device it is just that.

    Several processes do not yet share their statistics here.

    Args:
        num_features: Number of channels.
        eps: Added to the variance.
        momentum: Share of the new value in the running statistics; None averages all batches.
        affine: Whether there are a weight and a bias for each channel.
        track_running_stats: Keep running statistics for evaluation.
        process_group: Kept, and without effect on one device.
        device: Where the parameters live.
        dtype: Their dtype.
        bias: Whether affine includes the bias.
    """

    axes = tuple(range(2, 33))

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with each BatchNorm in it replaced by a SyncBatchNorm of the same tensors."""
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            return cls._from(module, process_group)
        for name, child in list(module.named_children()):
            converted = cls.convert_sync_batchnorm(child, process_group)
            if converted is not child:
                _replace(module, name, converted)
        return module

    @classmethod
    def _from(cls, source: _BatchNorm, process_group: Any) -> SyncBatchNorm:
        made = cls(
            source.num_features,
            source.eps,
            source.momentum,
            source.affine,
            source.track_running_stats,
            process_group,
        )
        made.weight, made.bias = source.weight, source.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(made, name, getattr(source, name))
        made.training = source.training
        return made


def _replace(owner: Module, path: str, module: Module) -> None:
    """Puts `module` where the child at `path` is: an attribute, or a place in plain containers."""
    head, *keys = path.split(".")
    if not keys:
        setattr(owner, head, module)
        return
    holder = getattr(owner, head)
    for key in keys[:-1]:
        holder = holder[key if isinstance(holder, dict) else int(key)]
    holder[keys[-1] if isinstance(holder, dict) else int(keys[-1])] = module


class LocalResponseNorm(Module):
    """Divides by a power of the mean square of neighbouring channels.

    Args:
        size: Number of channels.
        alpha: Factor of the mean.
        beta: Exponent.
        k: Added to the mean.

    Source: Krizhevsky et al., ImageNet Classification with Deep CNNs, 2012.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
