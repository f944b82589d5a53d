"""ResNet-18, 34 and 50 under torchvision's parameter names.

Source: K. He, X. Zhang, S. Ren and J. Sun, Deep Residual Learning for Image Recognition, CVPR 2016;
the stride of a bottleneck stands in its 3×3 convolution, as in the weights that are published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from ..nn import (
    AdaptiveAvgPool2d,
    BatchNorm2d,
    Conv2d,
    Flatten,
    Linear,
    MaxPool2d,
    Module,
    ReLU,
    Sequential,
    init,
)
from ..tensor import Tensor
from .pretrained import PretrainedModel


@dataclass(frozen=True)
class ResNetConfig:
    """Sizes; the defaults are ResNet-18.

    Attributes:
        block: "basic" (two 3×3 convolutions) or "bottleneck" (1×1, 3×3, 1×1).
        layers: how many blocks each of the four stages has.
        num_classes: how many logits.
        width: channels of the first stage.
        in_channels: channels of the images.
        zero_init_residual: start each block as the identity.
    """

    block: str = "basic"
    layers: tuple[int, ...] = (2, 2, 2, 2)
    num_classes: int = 1000
    width: int = 64
    in_channels: int = 3
    zero_init_residual: bool = False

    def __post_init__(self) -> None:
        if self.block not in _BLOCKS or len(self.layers) != 4:
            raise ArgumentError(
                f"ResNetConfig: block must be one of {', '.join(_BLOCKS)}, and layers four "
                f"numbers. Got {self.block!r} and {self.layers}."
            )


class _Basic(Module):
    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = BatchNorm2d(width)
        self.relu = ReLU()
        self.conv2 = Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class _Bottleneck(Module):
    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = Conv2d(inputs, width, 1, bias=False)
        self.bn1 = BatchNorm2d(width)
        self.conv2 = Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = BatchNorm2d(width)
        self.conv3 = Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = BatchNorm2d(4 * width)
        self.relu = ReLU()
        self.downsample = _shortcut(inputs, 4 * width, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


_BLOCKS: dict[str, Any] = {"basic": _Basic, "bottleneck": _Bottleneck}


def _shortcut(inputs: int, outputs: int, stride: int) -> Sequential | None:
    if stride == 1 and inputs == outputs:
        return None
    return Sequential(Conv2d(inputs, outputs, 1, stride, bias=False), BatchNorm2d(outputs))


class ResNet(PretrainedModel):
    """Images (N, in_channels, H, W) to logits (N, num_classes).

    Args:
        config: its sizes.

    Example:
        >>> net = ResNet(ResNetConfig(width=4, num_classes=3))
        >>> net(mt.randn(2, 3, 32, 32)).shape
        minitorch.Size([2, 3])
    """

    config_class = ResNetConfig
    model_type = "resnet"

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__(config)
        width = config.width
        self.conv1 = Conv2d(config.in_channels, width, 7, 2, padding=3, bias=False)
        self.bn1 = BatchNorm2d(width)
        self.relu = ReLU()
        self.maxpool = MaxPool2d(3, 2, padding=1)
        self._inputs = width
        self.layer1 = self._stage(width, config.layers[0], 1)
        self.layer2 = self._stage(2 * width, config.layers[1], 2)
        self.layer3 = self._stage(4 * width, config.layers[2], 2)
        self.layer4 = self._stage(8 * width, config.layers[3], 2)
        self.avgpool = AdaptiveAvgPool2d(1)
        self.flatten = Flatten()
        self.fc = Linear(self._inputs, config.num_classes)
        self._initialise()

    def _stage(self, width: int, count: int, stride: int) -> Sequential:
        kind = _BLOCKS[self.config.block]
        blocks = []
        for i in range(count):
            blocks.append(kind(self._inputs, width, stride if i == 0 else 1))
            self._inputs = kind.expansion * width
        return Sequential(*blocks)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif self.config.zero_init_residual and isinstance(module, _Basic | _Bottleneck):
                last: Any = module.bn3 if isinstance(module, _Bottleneck) else module.bn2
                init.zeros_(last.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images (N, in_channels, H, W)."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.flatten(self.avgpool(x)))


def resnet18(num_classes: int = 1000, **options: Any) -> ResNet:
    """ResNet-18; `options` are further fields of ResNetConfig."""
    return ResNet(ResNetConfig("basic", (2, 2, 2, 2), num_classes, **options))


def resnet34(num_classes: int = 1000, **options: Any) -> ResNet:
    """ResNet-34; `options` are further fields of ResNetConfig."""
    return ResNet(ResNetConfig("basic", (3, 4, 6, 3), num_classes, **options))


def resnet50(num_classes: int = 1000, **options: Any) -> ResNet:
    """ResNet-50; `options` are further fields of ResNetConfig."""
    return ResNet(ResNetConfig("bottleneck", (3, 4, 6, 3), num_classes, **options))
