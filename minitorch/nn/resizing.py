"""Layers that resize images, rearrange their pixels, or take them apart into patches."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .functional.checks import Size
from .module import Module


class Upsample(Module):
    """Resizes series, images or volumes; see `functional.interpolate`.

    Args:
        size: The new size.
        scale_factor: Or the factors by which the axes grow.
        mode: "nearest", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: Whether the centres of the outermost elements stay in place.
        recompute_scale_factor: Use the ratio of the sizes instead of the factor that was given.
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = tuple(size) if isinstance(size, tuple | list) else size
        several = isinstance(scale_factor, tuple | list)
        if several:
            self.scale_factor: Any = tuple(float(f) for f in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode, self.align_corners = mode, align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )
        return y

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes images by repeating the nearest pixel."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes images by "bilinear" with align_corners."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """Channels become pixels; see `functional.pixel_shuffle`."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.pixel_shuffle(input, self.upscale_factor)
        return y

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Pixels become channels; see `functional.pixel_unshuffle`."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.pixel_unshuffle(input, self.downscale_factor)
        return y

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Mixes the channels of groups; see `functional.channel_shuffle`."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        y: Tensor = F.channel_shuffle(input, self.groups)
        return y

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Unfold(Module):
    """The patches of images as columns; see `functional.unfold`."""

    def __init__(
        self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Adds columns back into images; see `functional.fold`."""

    def __init__(
        self,
        output_size: Size,
        kernel_size: Size,
        dilation: Size = 1,
        padding: Size = 0,
        stride: Size = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )
