"""Times what has a compiled body: `python kernels.py LIBRARY kernels|plain [NAME …]` prints JSON.

For each the milliseconds of a forward pass and, where there are gradients, of all of them; `plain`
is the same without compiled bodies.
"""

import importlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

SECONDS, LEAST = 0.08, 3
RECORDED = 8  # passes in which a compiled function is recorded and checked
ENOUGH = 0.15  # a pass that takes so many seconds is not repeated

Shape = tuple[int, ...]
SQUARE, ROWS, IMAGES = (1024, 1024), (4096, 512), (16, 64, 32, 32)


class Program(NamedTuple):
    """What is timed: a forward pass, and a backward pass from its result where there is one."""

    forward: Callable[[], Any]
    backward: Callable[[Any], Any] | None = None


Programs = dict[str, Program]


@cache
def values(m: Any, shape: Shape) -> Any:
    """Random numbers, the same for all that ask for this shape."""
    return m.randn(shape)


def of(m: Any, function: Callable[..., Any], *shapes: Shape) -> Program:
    """`function` of tensors of these shapes, and all gradients."""
    leaves = [values(m, shape).detach().requires_grad_() for shape in shapes]
    return Program(
        lambda: function(*leaves),
        lambda y: m.autograd.grad(y, leaves, values(m, tuple(y.shape))),
    )


def rows_and_norms(m: Any) -> Programs:
    """Softmax, losses, norms and embeddings."""
    F, make = m.nn.functional, partial(of, m)
    classes, words = m.arange(2048) % 1000, m.arange(8192) * 7919 % 5000
    wide, tall = (ROWS[1],), (IMAGES[1],)
    mean, var = m.zeros(tall), m.ones(tall)
    channels = (IMAGES, tall, tall)
    return {
        "softmax": make(lambda x: x.softmax(1), ROWS),
        "log_softmax": make(lambda x: x.log_softmax(1), ROWS),
        "cross_entropy, 1000 classes": make(lambda x: F.cross_entropy(x, classes), (2048, 1000)),
        "layer_norm": make(lambda x, w, b: F.layer_norm(x, wide, w, b), ROWS, wide, wide),
        "rms_norm": make(lambda x, w: F.rms_norm(x, wide, w), ROWS, wide),
        "batch_norm, training": make(
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True), *channels
        ),
        "batch_norm, evaluation": make(
            lambda x, w, b: F.batch_norm(x, mean, var, w, b, False), *channels
        ),
        "batch_norm, training, and relu": make(
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True).relu(), *channels
        ),
        "group_norm, 8 groups": make(lambda x, w, b: F.group_norm(x, 8, w, b), *channels),
        "instance_norm": make(lambda x: F.instance_norm(x), IMAGES),
        "embedding, 8192 of 5000 × 256": make(lambda w: F.embedding(words, w), (5000, 256)),
    }


def elementwise(m: Any) -> Programs:
    """What is computed element by element, and sums."""
    F, make = m.nn.functional, partial(of, m)
    layers = "relu gelu silu sigmoid tanh softplus elu leaky_relu hardswish hardtanh mish".split()
    functions = "exp expm1 log log1p sqrt erf".split()
    positive = values(m, SQUARE).abs() + 0.1
    start = {"log": positive, "log1p": positive, "sqrt": positive}
    return {
        **{name: make(getattr(F, name), SQUARE) for name in (*layers, "logsigmoid")},
        "gelu, tanh": make(lambda x: F.gelu(x, approximate="tanh"), SQUARE),
        **{
            name: from_leaf(m, getattr(m, name), start.get(name, values(m, SQUARE)))
            for name in functions
        },
        "dropout": make(lambda x: F.dropout(x, 0.1), SQUARE),
        "rand": Program(lambda: m.rand(*SQUARE)),
        "where": make(lambda x, y: m.where(x > 0, x, y), SQUARE, SQUARE),
        "x + y": make(lambda x, y: x + y, SQUARE, SQUARE),
        "x · y": make(lambda x, y: x * y, SQUARE, SQUARE),
        "x / y": make(lambda x, y: x / y, SQUARE, SQUARE),
        "x + row": make(lambda x, y: x + y, SQUARE, SQUARE[1:]),
        "sum": make(lambda x: x.sum(), ROWS),
        "sum of columns": make(lambda x: x.sum(0), ROWS),
        "mean of rows": make(lambda x: x.mean(1), ROWS),
        "var of rows": make(lambda x: x.var(1), ROWS),
        "amax of rows": make(lambda x: x.amax(1), ROWS),
        "norm": make(lambda x: x.norm(), ROWS),
    }


def from_leaf(m: Any, function: Callable[..., Any], values_: Any) -> Program:
    """`function` of one tensor with these values, and its gradient."""
    leaf = values_.detach().requires_grad_()
    return Program(
        lambda: function(leaf), lambda y: m.autograd.grad(y, leaf, values(m, tuple(y.shape)))
    )


def images(m: Any) -> Programs:
    """Windows of images, and values between their pixels."""
    F, make = m.nn.functional, partial(of, m)
    x, few = (8, 64, 28, 28), (8, 32, 14, 14)
    grid = m.rand(16, 32, 32, 2) * 2 - 1
    found = {
        "conv2d, 3 × 3": (x, (64, 64, 3, 3), {"padding": 1}),
        "conv2d, 1 × 1": (x, (128, 64, 1, 1), {}),
        "conv2d, 3 × 3, stride 2": (x, (64, 64, 3, 3), {"padding": 1, "stride": 2}),
        "conv2d, 5 × 5, 4 groups": (x, (64, 16, 5, 5), {"padding": 2, "groups": 4}),
        "conv2d, depthwise": (x, (64, 1, 3, 3), {"padding": 1, "groups": 64}),
        "conv2d, from 3 channels": ((8, 3, 56, 56), (32, 3, 3, 3), {"padding": 1}),
        "conv2d, many weights": ((2, 256, 7, 7), (256, 256, 3, 3), {"padding": 1}),
        "conv_transpose2d": (few, (32, 32, 4, 4), {"padding": 1, "stride": 2}),
        "conv1d": ((8, 64, 256), (64, 64, 5), {"padding": 2}),
        "conv3d": ((2, 16, 12, 12, 12), (16, 16, 3, 3, 3), {"padding": 1}),
    }
    convolutions = {
        name: make(partial(getattr(F, name.split(",")[0]), **options), x, w)
        for name, (x, w, options) in found.items()
    }
    return {
        **convolutions,
        "max_pool2d, 2 × 2": make(lambda x: F.max_pool2d(x, 2), IMAGES),
        "max_pool2d, 3 × 3, stride 2": make(lambda x: F.max_pool2d(x, 3, 2, 1), IMAGES),
        "max_pool3d, 2": make(lambda x: F.max_pool3d(x, 2), (4, 16, 16, 32, 32)),
        "avg_pool2d, 2 × 2": make(lambda x: F.avg_pool2d(x, 2), IMAGES),
        "avg_pool2d, 3 × 3, stride 1": make(lambda x: F.avg_pool2d(x, 3, 1, 1), IMAGES),
        "interpolate, bilinear, 2": make(
            lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (16, 32, 32, 32)
        ),
        "grid_sample": make(lambda x: F.grid_sample(x, grid, align_corners=False), IMAGES),
    }


def products_and_sequences(m: Any) -> Programs:
    """Products, attention and recurrent layers."""
    F, nn, make = m.nn.functional, m.nn, partial(of, m)
    attend = F.scaled_dot_product_attention
    heads, mask = [(4, 8, 256, 64)] * 3, m.rand(256, 256) < 0.9

    def recurrent(kind: Any) -> Program:
        layer = kind(128, 256)
        leaves = [m.randn(32, 32, 128).requires_grad_(), *layer.parameters()]
        g = m.randn(32, 32, 256)
        return Program(lambda: layer(leaves[0])[0], lambda y: m.autograd.grad(y, leaves, g))

    return {
        "linear, 2048 × 512 × 512": make(F.linear, (2048, 512), (512, 512), (512,)),
        "matmul, 64 of 128 × 64 × 128": make(lambda a, b: a @ b, (64, 128, 64), (64, 64, 128)),
        "attention, causal": make(lambda q, k, v: attend(q, k, v, is_causal=True), *heads),
        "attention, mask": make(lambda q, k, v: attend(q, k, v, mask), *heads),
        "attention, dropout": make(lambda q, k, v: attend(q, k, v, dropout_p=0.1), *heads),
        **{name: recurrent(getattr(nn, name)) for name in ("LSTM", "GRU", "RNN")},
    }


def updates(m: Any) -> Programs:
    """Optimizers and norms of gradients, of a million parameters."""

    def parameters() -> list[Any]:
        found = [m.nn.Parameter(m.randn(500, 500)) for _ in range(4)]
        for p in found:
            p.grad = m.randn(500, 500) * 1e-3
        return found

    def update(name: str, **options: Any) -> Program:
        return Program(getattr(m.optim, name)(parameters(), lr=1e-3, **options).step)

    def clip() -> Program:
        found = parameters()
        m.optim.SGD(found, lr=1e-9).step()  # which packs them
        return Program(lambda: m.nn.utils.clip_grad_norm_(found, 1.0))

    return {
        "SGD": update("SGD"),
        "SGD, momentum": update("SGD", momentum=0.9),
        "Adam": update("Adam"),
        "Adam, amsgrad": update("Adam", amsgrad=True),
        "AdamW": update("AdamW"),
        "RMSprop": update("RMSprop"),
        "RMSprop, momentum": update("RMSprop", momentum=0.9),
        "Adagrad": update("Adagrad"),
        "clip_grad_norm_": clip(),
    }


def chains(m: Any) -> Programs:
    """Captured steps, whose elementwise operations become one loop; ours alone."""
    if m.__name__ == "torch":
        return {}
    functions = {
        "compiled relu(x + row)": lambda x, b: (x + b).relu(),
        "compiled x · sigmoid(1.7 x) + row": lambda x, b: x * (x * 1.7).sigmoid() + b,
    }
    found = {name: of(m, m.compile(f), ROWS, ROWS[1:]) for name, f in functions.items()}
    for program in found.values():
        for _ in range(RECORDED):
            program.backward(program.forward())  # type: ignore[misc]
    return found


def programs(m: Any) -> Programs:
    """For each kernel what is timed."""
    m.manual_seed(0)
    families = rows_and_norms, elementwise, images, products_and_sequences, updates, chains
    return {name: program for family in families for name, program in family(m).items()}


def milliseconds(program: Program) -> dict[str, float]:
    """The medians over repeated passes; the first two are a warm-up unless they take long."""
    laps: dict[str, list[float]] = {"forward": [], "backward": []}
    warm_up, end = 2, time.perf_counter() + 60
    while len(laps["forward"]) < LEAST or time.perf_counter() < end:
        start = time.perf_counter()
        y = program.forward()
        middle = time.perf_counter()
        if program.backward is not None:
            program.backward(y)
        stop = time.perf_counter()
        if warm_up:
            warm_up -= 1
            end = time.perf_counter() + SECONDS
            if warm_up or stop - start < ENOUGH:
                continue
        laps["forward"].append((middle - start) * 1e3)
        laps["backward"].append((stop - middle) * 1e3)
        if stop - start > ENOUGH:
            break
    found = {kind: statistics.median(times) for kind, times in laps.items()}
    return found if program.backward else {"forward": found["forward"]}


def print_speed_ups(sides: dict[str, list[dict[str, float]]]) -> None:
    """A row for each program, with the medians of each side and how many times ours is faster."""
    others = [*sides][1:]
    head = [f"{kind}, {side}" for kind in ("ms", "gradients, ms") for side in sides]
    print(f"| program | {' | '.join([*head, *(f'{side} ÷ ours' for side in others)])} |")
    print("|---" + "|--:" * (len(head) + len(others)) + "|")
    logarithms: dict[str, list[float]] = {side: [] for side in others}
    names = dict.fromkeys(key.rpartition(" ")[0] for key in sides["minitorch"][0])
    for name in names:
        found = {
            (side, kind): statistics.median(numbers[f"{name} {kind}"] for numbers in runs)
            for side, runs in sides.items()
            for kind in ("forward", "backward")
            if f"{name} {kind}" in runs[0]
        }
        cells = [
            f"{found[side, kind]:.2f}" if (side, kind) in found else ""
            for kind in ("forward", "backward")
            for side in sides
        ]
        for side in others:
            both = [sum(t for (of, _), t in found.items() if of == s) for s in (side, "minitorch")]
            cells.append(f"{both[0] / both[1]:.2f}" if both[0] else "")
            logarithms[side] += [math.log(both[0] / both[1])] if both[0] else []
        print(f"| {name} | {' | '.join(cells)} |")
    means = (f"{side} {math.exp(statistics.mean(logs)):.2f}" for side, logs in logarithms.items())
    print(f"geometric mean of the ratios: {', '.join(means)}")


if __name__ == "__main__":
    if sys.argv[2] == "plain":
        os.environ["MINITORCH_KERNELS"] = "off"
    library = importlib.import_module(sys.argv[1])
    names = sys.argv[3:]
    found = {
        f"{name} {kind}": took
        for name, program in programs(library).items()
        if not names or any(part in name for part in names)
        for kind, took in milliseconds(program).items()
    }
    print(json.dumps(found, ensure_ascii=False))
