"""Times steps in plain tensor operations, eager and compiled: `python chains.py LIBRARY [ROWS]`.

LIBRARY is minitorch or torch. A step is forward and backward of a function of f32[ROWS, 512] and a
row of 512. Prints milliseconds of processor time (the smallest of twelve), in turn, on one thread.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

WIDTH = 512
TURNS = 12


def functions(m: Any) -> dict[str, Callable[[Any, Any, Any], Any]]:
    """Losses of `x`, `y` and a row `w`."""

    def layer_norm(x: Any, y: Any, w: Any) -> Any:
        c = x - x.mean(-1, keepdim=True)
        return ((c / m.sqrt((c * c).mean(-1, keepdim=True) + 1e-5) * w + w) * y).sum()

    def huber(x: Any, y: Any, w: Any) -> Any:
        d = (x - y).abs()
        return m.where(d < 1, 0.5 * d * d, d - 0.5).mean()

    return {
        "x · sigmoid(1.702 x)": lambda x, y, w: (x * m.sigmoid(1.702 * x)).sum(),
        "RMSNorm": lambda x, y, w: (
            x * m.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w * y
        ).sum(),
        "LayerNorm": layer_norm,
        "physics": lambda x, y, w: (
            (m.tanh(x * y) ** 2 + 0.5 * x * x - m.exp(-x.abs()) * y) ** 2
        ).mean(),
        "Huber": huber,
        "residuals": lambda x, y, w: ((x * 0.5 + y * 0.1) * 1.1 + x).square().sum(),
        "logistic loss": lambda x, y, w: (
            m.maximum(x, x * 0) - x * y + m.log1p(m.exp(-x.abs()))
        ).mean(),
        "gate": lambda x, y, w: (m.nn.functional.silu(x) * y * w).square().mean(),
    }


def main(library: str, rows: int) -> None:
    """Prints a line for each function."""
    m: Any = importlib.import_module(library)
    m.manual_seed(0)
    if library == "torch":
        m.set_num_threads(1)
    x, y, w = m.randn(rows, WIDTH), m.randn(rows, WIDTH), m.randn(WIDTH)
    leaves = (x.requires_grad_(), w.requires_grad_())

    def step(function: Callable[..., Any]) -> float:
        for leaf in leaves:
            leaf.grad = None
        start = time.process_time()
        function(x, y, w).backward()
        return (time.process_time() - start) * 1e3

    for name, eager in functions(m).items():
        compiled = m.compile(eager)
        for _ in range(6):
            step(compiled)
        pairs = [(step(eager), step(compiled)) for _ in range(TURNS)]
        a, b = (min(column) for column in zip(*pairs, strict=True))
        print(f"{library:10} {name:20} {a:8.2f} {b:8.2f} {a / b:6.2f} ×", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=("minitorch", "torch"))
    parser.add_argument("rows", type=int, nargs="?", default=4096)
    given = parser.parse_args()
    main(given.library, given.rows)
