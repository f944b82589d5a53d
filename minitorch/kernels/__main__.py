"""`python -m minitorch.kernels --build` compiles the kernels of common layers ahead of use."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

# Rows that give arrays for the serial and for the parallel form of each kernel.
_ROWS = (32, 1024)
_WIDTH = 64


def _programs(rows: int) -> dict[str, Callable[[], Any]]:
    """For each family of kernels a program that uses it, forward and backward."""
    import minitorch as mt
    from minitorch import nn
    from minitorch.nn import functional as F
    from minitorch.optim import Adam

    x = mt.randn(rows, _WIDTH, requires_grad=True)
    series = mt.randn(4, rows // 4, _WIDTH, requires_grad=True)
    images = mt.randn(4, rows // 32, 16, 16, requires_grad=True)
    targets = mt.randint(0, _WIDTH, (rows,))
    table = mt.randn(_WIDTH, _WIDTH, requires_grad=True)
    model = nn.Linear(_WIDTH, _WIDTH)

    def attention() -> Any:
        heads = series.reshape(4, rows // 4, 4, _WIDTH // 4).transpose(1, 2)
        return F.scaled_dot_product_attention(heads, heads, heads, is_causal=True).sum()

    def tiles() -> Any:
        images = mt.randn(rows // 32, 32, 16, 16, requires_grad=True)
        layer = nn.Conv2d(32, 64, 3, padding=1)
        return F.max_pool2d(F.relu(layer(images)), 2).square().sum()

    def update() -> Any:
        optimizer = Adam(model.parameters())
        model(x.detach()).sum().backward()
        optimizer.step()
        return None

    return {
        "products": lambda: (x @ x.T).sum() + model(x).sum(),
        "softmax": lambda: x.softmax(1).square().sum() + x.log_softmax(1).square().sum(),
        "cross-entropy": lambda: F.cross_entropy(x, targets),
        "layer norm": lambda: F.layer_norm(x, (_WIDTH,), x[0], x[1]).sum(),
        "activations": lambda: sum(
            f(x).square().sum()
            for f in (F.relu, F.gelu, F.silu, lambda a: F.gelu(a, approximate="tanh"))
        ),
        "embedding": lambda: F.embedding(targets, table).square().sum(),
        "attention": attention,
        "recurrent layers": lambda: (
            nn.LSTM(_WIDTH, _WIDTH)(series)[0].sum() + nn.GRU(_WIDTH, _WIDTH)(series)[0].sum()
        ),
        "convolution": lambda: F.max_pool2d(
            F.batch_norm(
                F.conv2d(images, mt.ones(8, rows // 32, 3, 3, requires_grad=True)),
                *(None, None),
                training=True,
            ),
            2,
        ).sum(),
        "tiles of images": tiles,
        "optimizers": update,
    }


def build() -> None:
    """Runs every family once with small and once with larger arrays, and prints the seconds."""
    for name in _programs(_ROWS[0]):
        start = time.perf_counter()
        for rows in _ROWS:
            run(name, rows)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


def run(name: str, rows: int) -> None:
    """The program of one family, forward and backward."""
    loss = _programs(rows)[name]()
    if loss is not None:
        loss.backward()


def main(arguments: list[str] | None = None) -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minitorch.kernels", description=__doc__)
    parser.add_argument("--build", action="store_true", help="compile now what is not cached yet")
    if not parser.parse_args(arguments).build:
        parser.print_help()
        return 2
    build()
    return 0


if __name__ == "__main__":
    sys.exit(main())
