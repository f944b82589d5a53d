"""Times convolutions of a grid of shapes: `python convolutions.py LIBRARY conv` prints JSON.

Each number is the milliseconds of a forward pass and the gradients of input, weight and bias.
"""

import importlib
import json
import statistics
import sys
import time
from typing import Any

# name: images, channels, size, outputs, kernel, stride, padding, dilation, groups
SHAPES = {
    "resnet stem 7x7/2": (4, 3, 112, 64, 7, 2, 3, 1, 1),
    "resnet 3x3 56": (2, 64, 56, 64, 3, 1, 1, 1, 1),
    "resnet 3x3 28": (4, 128, 28, 128, 3, 1, 1, 1, 1),
    "resnet 3x3 14": (8, 256, 14, 256, 3, 1, 1, 1, 1),
    "resnet 3x3 7": (8, 512, 7, 512, 3, 1, 1, 1, 1),
    "resnet 3x3/2 56": (4, 64, 56, 128, 3, 2, 1, 1, 1),
    "resnet 3x3/2 28": (8, 128, 28, 256, 3, 2, 1, 1, 1),
    "resnet 1x1 expand": (4, 64, 56, 256, 1, 1, 0, 1, 1),
    "resnet 1x1 reduce": (4, 256, 56, 64, 1, 1, 0, 1, 1),
    "resnet 1x1/2": (8, 64, 56, 128, 1, 2, 0, 1, 1),
    "resnet 1x1 7": (8, 2048, 7, 512, 1, 1, 0, 1, 1),
    "small resnet stem": (32, 3, 32, 32, 3, 1, 1, 1, 1),
    "small resnet 3x3 32": (32, 32, 32, 32, 3, 1, 1, 1, 1),
    "small resnet 3x3/2": (32, 32, 32, 64, 3, 2, 1, 1, 1),
    "small resnet 3x3 16": (32, 64, 16, 64, 3, 1, 1, 1, 1),
    "small resnet 3x3 8": (32, 128, 8, 128, 3, 1, 1, 1, 1),
    "small resnet 1x1/2": (32, 32, 32, 64, 1, 2, 0, 1, 1),
    "vgg first": (2, 3, 112, 64, 3, 1, 1, 1, 1),
    "vgg 56": (2, 128, 56, 128, 3, 1, 1, 1, 1),
    "vgg 14, one image": (1, 512, 14, 512, 3, 1, 1, 1, 1),
    "cnn first": (64, 1, 28, 32, 3, 1, 1, 1, 1),
    "cnn second": (64, 32, 14, 64, 3, 1, 1, 1, 1),
    "lenet 5x5": (64, 6, 14, 16, 5, 1, 0, 1, 1),
    "inception 5x5": (8, 32, 28, 96, 5, 1, 2, 1, 1),
    "mobilenet depthwise": (8, 64, 56, 64, 3, 1, 1, 1, 64),
    "mobilenet depthwise/2": (8, 128, 28, 128, 3, 2, 1, 1, 128),
    "mobilenet 1x1": (8, 96, 28, 24, 1, 1, 0, 1, 1),
    "efficientnet depthwise 5x5": (8, 96, 14, 96, 5, 1, 2, 1, 96),
    "resnext grouped": (4, 128, 28, 128, 3, 1, 1, 1, 32),
    "deeplab dilated": (2, 128, 28, 128, 3, 1, 4, 4, 1),
}
SECONDS = 0.3


def milliseconds(m: Any, shape: tuple[int, ...]) -> float:
    """The median over repeated passes."""
    n, c, size, o, kernel, stride, padding, dilation, groups = shape
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    layer = m.nn.Conv2d(c, o, kernel, **options)
    x = m.randn(n, c, size, size).requires_grad_()
    g = m.randn(*layer(x).shape)
    laps: list[float] = []
    end = time.perf_counter() + SECONDS
    while len(laps) < 5 or time.perf_counter() < end:
        x.grad = layer.weight.grad = layer.bias.grad = None
        start = time.perf_counter()
        layer(x).backward(g)
        laps.append(time.perf_counter() - start)
    return statistics.median(laps[2:]) * 1e3


if __name__ == "__main__":
    library = importlib.import_module(sys.argv[1])
    print(json.dumps({f"{k}, ms": milliseconds(library, v) for k, v in SHAPES.items()}))
