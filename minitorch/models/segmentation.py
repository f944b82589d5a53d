"""U-Net, under the parameter names of the widely used public PyTorch version.

Source: O. Ronneberger, P. Fischer and T. Brox, U-Net: Convolutional Networks for Biomedical Image
Segmentation, MICCAI 2015; padded and batch-normalised, so that the output has the input's size.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ArgumentError, ShapeError, describe
from ..nn import (
    BatchNorm2d,
    Conv2d,
    ConvTranspose2d,
    MaxPool2d,
    Module,
    ReLU,
    Sequential,
    Upsample,
)
from ..nn import functional as F
from ..ops.joining import cat
from ..tensor import Tensor
from .pretrained import PretrainedModel


@dataclass(frozen=True)
class UNetConfig:
    """Sizes.

    Attributes:
        n_channels: channels of the images.
        n_classes: channels of the output.
        width: channels at full resolution; each of the `depth` halvings doubles them.
        bilinear: enlarge by interpolation in place of transposed convolutions.
    """

    n_channels: int = 3
    n_classes: int = 2
    width: int = 64
    depth: int = 4
    bilinear: bool = False

    def __post_init__(self) -> None:
        if self.depth < 1 or self.width < 1:
            raise ArgumentError(
                f"UNetConfig: width and depth must be at least 1. Got {self.width}, {self.depth}."
            )


class _DoubleConv(Module):
    def __init__(self, inputs: int, outputs: int, between: int | None = None) -> None:
        super().__init__()
        between = outputs if between is None else between
        self.double_conv = Sequential(
            Conv2d(inputs, between, 3, padding=1, bias=False),
            BatchNorm2d(between),
            ReLU(),
            Conv2d(between, outputs, 3, padding=1, bias=False),
            BatchNorm2d(outputs),
            ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class _Down(Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.maxpool_conv = Sequential(MaxPool2d(2), _DoubleConv(inputs, outputs))

    def forward(self, x: Tensor) -> Tensor:
        return self.maxpool_conv(x)


class _Up(Module):
    def __init__(self, inputs: int, outputs: int, bilinear: bool) -> None:
        super().__init__()
        self.up: Module
        if bilinear:
            self.up = Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        else:
            self.up = ConvTranspose2d(inputs, inputs // 2, 2, stride=2)
        self.conv = _DoubleConv(inputs, outputs, inputs // 2 if bilinear else outputs)

    def forward(self, x: Tensor, skipped: Tensor) -> Tensor:
        x = self.up(x)
        rows, columns = (skipped.shape[i] - x.shape[i] for i in (2, 3))
        if rows or columns:
            x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return self.conv(cat([skipped, x], dim=1))


class _OutConv(Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class UNet(PretrainedModel):
    """Images (N, n_channels, H, W) to logits of each pixel (N, n_classes, H, W).

    Args:
        config: its sizes.

    Example:
        >>> net = UNet(UNetConfig(n_channels=1, n_classes=2, width=4, depth=2))
        >>> net(mt.randn(1, 1, 16, 20)).shape
        minitorch.Size([1, 2, 16, 20])
    """

    config_class = UNetConfig
    model_type = "unet"

    def __init__(self, config: UNetConfig) -> None:
        super().__init__(config)
        widths = [config.width * 2**i for i in range(config.depth + 1)]
        self.inc = _DoubleConv(config.n_channels, widths[0])
        factor = 2 if config.bilinear else 1
        for i in range(config.depth):
            outputs = widths[i + 1] // (factor if i == config.depth - 1 else 1)
            setattr(self, f"down{i + 1}", _Down(widths[i], outputs))
        for i in range(config.depth):
            outputs = widths[-2 - i] // (factor if i < config.depth - 1 else 1)
            setattr(self, f"up{i + 1}", _Up(widths[-1 - i], outputs, config.bilinear))
        self.outc = _OutConv(widths[0], config.n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of each pixel; H and W must be at least 2 ** depth.

        Raises:
            ShapeError: the images are no (N, n_channels, H, W), or too small.
        """
        depth = self.config.depth
        if x.ndim != 4 or min(x.shape[2:]) < 2**depth:
            raise ShapeError(
                f"UNet: images must be (N, C, H, W) with sides of at least {2**depth}. Got "
                f"{describe(x)}. Use larger images or a smaller depth."
            )
        levels = [self.inc(x)]
        for i in range(depth):
            levels.append(getattr(self, f"down{i + 1}")(levels[-1]))
        x = levels.pop()
        for i in range(depth):
            x = getattr(self, f"up{i + 1}")(x, levels.pop())
        return self.outc(x)
