"""Layers that take the size of their input from the first input they see."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError, describe
from ..tensor import Tensor
from .convolution import Conv1d, Conv2d, Conv3d
from .functional.checks import Size
from .linear import Linear
from .module import Module
from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from .other_norms import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .transposed import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .uninitialized import UninitializedBuffer, UninitializedParameter, is_uninitialized


class LazyModule(Module):
    """A layer whose tensors get their shapes at the first call, when it becomes an ordinary one.

    Attributes:
        cls_to_become: The class of the ordinary layer.
        size_name: The attribute that holds the size; 0 until it is known.
    """

    cls_to_become: type[Module]
    size_name: str

    def _forget(self) -> None:
        """Takes the shapes away from all tensors that the size of the input decides."""
        for name, value in list(vars(self).items()):
            if not isinstance(value, Tensor) or not value.ndim:
                continue
            kind = UninitializedBuffer if name in self._declared else UninitializedParameter
            made = kind(value.requires_grad, value.device, value.dtype)
            vars(self)[name] = made
        setattr(self, self.size_name, 0)

    def has_uninitialized_params(self) -> bool:
        """True until the shapes are known."""
        return any(is_uninitialized(value) for value in vars(self).values())

    def reset_parameters(self) -> None:
        """Draws new start values, once the shapes are known."""
        if not self.has_uninitialized_params():
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor) -> None:
        """Gives all tensors their shapes, and start values unless some were loaded."""
        size = self._size_of(input)
        if self.has_uninitialized_params():
            for name, shape in self._shapes(size).items():
                value = getattr(self, name)
                if is_uninitialized(value):
                    value.materialize(shape)
            setattr(self, self.size_name, size)
            self.reset_parameters()
        elif not getattr(self, self.size_name):
            setattr(self, self.size_name, size)

    def _size_of(self, input: Tensor) -> int:
        raise NotImplementedError

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.initialize_parameters(*args[:1] if args else (kwargs["input"],))
        self.__class__ = self.cls_to_become  # type: ignore[assignment]
        return self(*args, **kwargs)


class LazyLinear(LazyModule, Linear):
    """Linear that takes `in_features` from the last axis of its first input.

    Args:
        out_features: Size of the last axis of the output.
        bias: Whether there is a bias.
        device: Where the parameters live.
        dtype: Their dtype.
    """

    cls_to_become = Linear
    size_name = "in_features"

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        Linear.__init__(self, 1, out_features, bias, device, dtype)
        self._forget()

    def _size_of(self, input: Tensor) -> int:
        if not input.ndim:
            raise ShapeError(f"LazyLinear: the input needs an axis. Got {describe(input)}.")
        return int(input.shape[-1])

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, size), "bias": (self.out_features,)}


class _Channels(LazyModule):
    """What convolutions have in common: the channels are axis 1, or 0 without a batch."""

    axes: int
    groups: int
    out_channels: int
    kernel_size: tuple[int, ...]
    size_name = "in_channels"

    def _size_of(self, input: Tensor) -> int:
        name = type(self).__name__
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise ShapeError(
                f"{name}: the input must have {self.axes + 2} axes, or {self.axes + 1} without the "
                f"batch. Got {describe(input)}."
            )
        channels = int(input.shape[-1 - self.axes])
        if channels % self.groups:
            raise ArgumentError(
                f"{name}: groups must divide the channels. Got groups={self.groups} for "
                f"{describe(input)}."
            )
        return channels


class _LazyConv(_Channels):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]
            groups,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self._forget()

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        o = self.out_channels
        return {"weight": (o, size // self.groups, *self.kernel_size), "bias": (o,)}


class LazyConv1d(_LazyConv, Conv1d):
    """Conv1d that takes `in_channels` from its first input; the other arguments are Conv1d's."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """Conv2d that takes `in_channels` from its first input; the other arguments are Conv2d's."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """Conv3d that takes `in_channels` from its first input; the other arguments are Conv3d's."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_Channels):
    def __init__(
        self,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]
            groups,
            out_channels,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            bias,
            dilation,
            padding_mode,
            device,
            dtype,
        )
        self._forget()

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        o = self.out_channels
        return {"weight": (size, o // self.groups, *self.kernel_size), "bias": (o,)}


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """ConvTranspose1d that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """ConvTranspose2d that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """ConvTranspose3d that takes `in_channels` from its first input."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(LazyModule):
    axes: tuple[int, ...]
    size_name = "num_features"
    unbatched = False  # the first of `axes` is that of an input without a batch

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(  # type: ignore[call-arg]
            1, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self._forget()

    def _size_of(self, input: Tensor) -> int:
        if input.ndim not in self.axes:
            wanted = " or ".join(map(str, self.axes))
            raise ShapeError(
                f"{type(self).__name__}: the input must have {wanted} axes. Got {describe(input)}."
            )
        return int(input.shape[0 if self.unbatched and input.ndim == self.axes[0] else 1])

    def _shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (size,))


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):  # type: ignore[misc]
    """BatchNorm1d that takes `num_features` from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):  # type: ignore[misc]
    """BatchNorm2d that takes `num_features` from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):  # type: ignore[misc]
    """BatchNorm3d that takes `num_features` from its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):  # type: ignore[misc]
    """InstanceNorm1d that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm1d
    unbatched = True


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):  # type: ignore[misc]
    """InstanceNorm2d that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm2d
    unbatched = True


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):  # type: ignore[misc]
    """InstanceNorm3d that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm3d
    unbatched = True
