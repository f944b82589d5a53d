"""VGG-11 and VGG-16, with and without batch normalisation, under torchvision's parameter names.

Source: K. Simonyan and A. Zisserman, Very Deep Convolutional Networks for Large-Scale Image
Recognition, ICLR 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..nn import (
    AdaptiveAvgPool2d,
    BatchNorm2d,
    Conv2d,
    Dropout,
    Linear,
    MaxPool2d,
    Module,
    ReLU,
    Sequential,
    init,
)
from ..tensor import Tensor
from .pretrained import PretrainedModel

_POOL = 0
_VGG11 = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)
_VGG16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)


@dataclass(frozen=True)
class VGGConfig:
    """Sizes; the defaults are VGG-11.

    Attributes:
        stages: channels of each 3×3 convolution; 0 is a pooling that halves the size.
        batch_norm: normalise after each convolution.
        num_classes: how many logits.
        hidden: width of the two hidden linear layers.
        dropout: share of zeros behind each of them in training.
        in_channels: channels of the images.
    """

    stages: tuple[int, ...] = _VGG11
    batch_norm: bool = False
    num_classes: int = 1000
    hidden: int = 4096
    dropout: float = 0.5
    in_channels: int = 3


class VGG(PretrainedModel):
    """Images (N, in_channels, H, W) to logits (N, num_classes).

    Args:
        config: its sizes.
    """

    config_class = VGGConfig
    model_type = "vgg"

    def __init__(self, config: VGGConfig) -> None:
        super().__init__(config)
        layers: list[Module] = []
        channels = config.in_channels
        for width in config.stages:
            if width == _POOL:
                layers.append(MaxPool2d(2))
                continue
            layers.append(Conv2d(channels, width, 3, padding=1))
            layers += [BatchNorm2d(width), ReLU()] if config.batch_norm else [ReLU()]
            channels = width
        self.features = Sequential(*layers)
        self.avgpool = AdaptiveAvgPool2d(7)
        self.classifier = Sequential(
            Linear(49 * channels, config.hidden),
            ReLU(),
            Dropout(config.dropout),
            Linear(config.hidden, config.hidden),
            ReLU(),
            Dropout(config.dropout),
            Linear(config.hidden, config.num_classes),
        )
        self._initialise()

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                _zero(module.bias)
            elif isinstance(module, Linear):
                init.normal_(module.weight, std=0.01)
                _zero(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images (N, in_channels, H, W)."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _zero(bias: Tensor | None) -> None:
    if bias is not None:
        init.zeros_(bias)


def vgg11(num_classes: int = 1000, **options: Any) -> VGG:
    """VGG-11; `options` are further fields of VGGConfig."""
    return VGG(VGGConfig(_VGG11, False, num_classes, **options))


def vgg11_bn(num_classes: int = 1000, **options: Any) -> VGG:
    """VGG-11 with batch normalisation; `options` are further fields of VGGConfig."""
    return VGG(VGGConfig(_VGG11, True, num_classes, **options))


def vgg16(num_classes: int = 1000, **options: Any) -> VGG:
    """VGG-16; `options` are further fields of VGGConfig."""
    return VGG(VGGConfig(_VGG16, False, num_classes, **options))


def vgg16_bn(num_classes: int = 1000, **options: Any) -> VGG:
    """VGG-16 with batch normalisation; `options` are further fields of VGGConfig."""
    return VGG(VGGConfig(_VGG16, True, num_classes, **options))
