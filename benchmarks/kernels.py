"""Times what has a compiled body: `python kernels.py LIBRARY kernels|plain` prints JSON.

Each number is the milliseconds of a forward pass and, where there are gradients, of all of them;
`plain` is the same without compiled bodies.
"""

import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

SECONDS, LEAST = 0.08, 3

Programs = dict[str, Callable[[], Any]]
SQUARE, ROWS, IMAGES = (2048, 1024), (4096, 768), (32, 64, 32, 32)


@cache
def values(m: Any, shape: tuple[int, ...]) -> Any:
    """Random numbers, the same for all that ask for this shape."""
    return m.randn(shape)


def gradients(m: Any, function: Callable[..., Any], *shapes: tuple[int, ...]) -> Callable[[], Any]:
    """A forward pass of `function` from tensors of these shapes, and all gradients."""
    leaves = [values(m, shape).detach().requires_grad_() for shape in shapes]

    def run() -> Any:
        y = function(*leaves)
        return m.autograd.grad(y, leaves, values(m, tuple(y.shape)))

    return run


def rows_and_norms(m: Any) -> Programs:
    """Softmax, losses, norms and embeddings."""
    F, of = m.nn.functional, partial(gradients, m)
    classes, words = m.arange(4096) % 1000, m.arange(8192) * 7919 % 5000
    wide, tall = (768,), (64,)
    return {
        "softmax 4096×768": of(lambda x: x.softmax(1), ROWS),
        "log_softmax 4096×768": of(lambda x: x.log_softmax(1), ROWS),
        "cross_entropy 4096×1000": of(lambda x: F.cross_entropy(x, classes), (4096, 1000)),
        "layer_norm 4096×768": of(lambda x, w, b: F.layer_norm(x, wide, w, b), ROWS, wide, wide),
        "layer_norm without weights": of(lambda x: F.layer_norm(x, wide), ROWS),
        "rms_norm 4096×768": of(lambda x, w: F.rms_norm(x, wide, w), ROWS, wide),
        "batch_norm 32×64×32×32": of(
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True), IMAGES, tall, tall
        ),
        "group_norm, 8 groups": of(lambda x, w, b: F.group_norm(x, 8, w, b), IMAGES, tall, tall),
        "instance_norm": of(lambda x: F.instance_norm(x), IMAGES),
        "embedding 8192 of 5000×256": of(lambda w: F.embedding(words, w), (5000, 256)),
    }


def elementwise(m: Any) -> Programs:
    """What is computed element by element, and sums."""
    F, of = m.nn.functional, partial(gradients, m)
    names = "relu gelu silu sigmoid tanh softplus elu leaky_relu hardswish mish logsigmoid".split()
    return {
        **{f"{name} 2048×1024": of(getattr(F, name), SQUARE) for name in names},
        "gelu, tanh 2048×1024": of(lambda x: F.gelu(x, approximate="tanh"), SQUARE),
        **{
            f"{name} 2048×1024": of(getattr(m, name), SQUARE)
            for name in ("exp", "erf", "log", "sqrt")
        },
        "dropout 2048×1024": of(lambda x: F.dropout(x, 0.1), SQUARE),
        "rand 2048×1024": lambda: m.rand(*SQUARE),
        "x + y 2048×1024": of(lambda x, y: x + y, SQUARE, SQUARE),
        "x · y 2048×1024": of(lambda x, y: x * y, SQUARE, SQUARE),
        "x + row 2048×1024": of(lambda x, y: x + y, SQUARE, (1024,)),
        "sum 2048×1024": of(lambda x: x.sum(), SQUARE),
        "sum of columns": of(lambda x: x.sum(0), SQUARE),
        "mean of rows": of(lambda x: x.mean(1), SQUARE),
        "var of rows": of(lambda x: x.var(1), SQUARE),
        "amax of rows": of(lambda x: x.amax(1), SQUARE),
        "clamp 2048×1024": of(lambda x: x.clamp(-1, 1), SQUARE),
        "where 2048×1024": of(lambda x, y: m.where(x > 0, x, y), SQUARE, SQUARE),
        "norm 2048×1024": of(lambda x: x.norm(), SQUARE),
    }


def layers(m: Any) -> Programs:
    """Products, attention, windows of images, recurrent layers and optimizers."""
    F, nn, of = m.nn.functional, m.nn, partial(gradients, m)
    heads = [(8, 8, 256, 64)] * 3

    def update(make: Callable[[Any], Any]) -> Callable[[], Any]:
        parameters = [nn.Parameter(m.randn(1000, 1000)) for _ in range(4)]
        for p in parameters:
            p.grad = m.randn(1000, 1000)
        return make(parameters)

    def recurrent(make: Any) -> Callable[[], Any]:
        layer = make(128, 256)
        leaves = [m.randn(64, 32, 128).requires_grad_(), *layer.parameters()]
        g = m.randn(64, 32, 256)
        return lambda: m.autograd.grad(layer(leaves[0])[0], leaves, g)

    return {
        "max_pool2d 2": of(lambda x: F.max_pool2d(x, 2), IMAGES),
        "avg_pool2d 2": of(lambda x: F.avg_pool2d(x, 2), IMAGES),
        "linear 2048×512×512": of(F.linear, (2048, 512), (512, 512), (512,)),
        "matmul 64×(128×64×128)": of(lambda a, b: a @ b, (64, 128, 64), (64, 64, 128)),
        "attention 8×8×256×64": of(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *heads
        ),
        "attention, dropout": of(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1), *heads
        ),
        "conv2d 3×3": of(lambda x, w: F.conv2d(x, w, padding=1), (16, 64, 28, 28), (64, 64, 3, 3)),
        "conv2d depthwise": of(
            lambda x, w: F.conv2d(x, w, padding=1, groups=64), (16, 64, 28, 28), (64, 1, 3, 3)
        ),
        "LSTM 64×32, 128 to 256": recurrent(nn.LSTM),
        "GRU 64×32, 128 to 256": recurrent(nn.GRU),
        "RNN 64×32, 128 to 256": recurrent(nn.RNN),
        "Adam, 4 million": update(lambda p: m.optim.Adam(p, lr=1e-3).step),
        "SGD, momentum, 4 million": update(lambda p: m.optim.SGD(p, lr=1e-3, momentum=0.9).step),
    }


def programs(m: Any) -> Programs:
    """For each kernel what is timed."""
    m.manual_seed(0)
    return rows_and_norms(m) | elementwise(m) | layers(m)


def milliseconds(program: Callable[[], Any]) -> float:
    """The median over repeated calls."""
    laps: list[float] = []
    program()
    program()
    end = time.perf_counter() + SECONDS
    while len(laps) < LEAST or time.perf_counter() < end:
        start = time.perf_counter()
        program()
        laps.append(time.perf_counter() - start)
    return statistics.median(laps) * 1e3


if __name__ == "__main__":
    if sys.argv[2] == "plain":
        os.environ["MINITORCH_KERNELS"] = "off"
    library = importlib.import_module(sys.argv[1])
    names = sys.argv[3:]
    found = {
        f"{name}, ms": milliseconds(program)
        for name, program in programs(library).items()
        if not names or any(part in name for part in names)
    }
    print(json.dumps(found, ensure_ascii=False))
