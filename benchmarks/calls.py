"""Times calls, imports, batches: `python calls.py LIBRARY ops|imports|loader` prints JSON."""

import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

CALLS, ROUNDS, PASSES = 2000, 15, 3
MODULES = {
    "minitorch": ("numpy", "minitorch", "minitorch.trainer"),
    "torch": ("numpy", "torch", "pytorch_lightning"),
}


def per_call(function: Callable[[], Any]) -> float:
    """Nanoseconds of one call: the median over rounds of many calls."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(CALLS):
            function()
        rounds.append((time.perf_counter_ns() - start) / CALLS)
    return statistics.median(rounds)


def ops(library: str) -> dict[str, float]:
    """Recorded operations on tiny tensors, nanoseconds."""
    m = importlib.import_module(library)
    a, b = m.ones(4, requires_grad=True), m.ones(4, requires_grad=True)
    square = m.ones(4, 4, requires_grad=True)
    return {
        "mul_ns": per_call(lambda: a * b),
        "add_scalar_ns": per_call(lambda: a + 1.0),
        "relu_ns": per_call(lambda: a.relu()),
        "exp_ns": per_call(lambda: a.exp()),
        "matmul_ns": per_call(lambda: square @ square),
        "sum_ns": per_call(lambda: a.sum()),
        "mul_sum_backward_ns": per_call(lambda: (a * b).sum().backward()),
    }


def imports(library: str) -> dict[str, float]:
    """Seconds of a first import in a fresh process, interpreter start excluded."""
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"

    def seconds(module: str) -> float:
        command = [sys.executable, "-W", "ignore", "-c", code.format(module)]
        return statistics.median([float(subprocess.check_output(command)) for _ in range(3)])

    names = ("numpy_s", "framework_s", "trainer_s")
    return dict(zip(names, map(seconds, MODULES[library]), strict=True))


def loader(library: str) -> dict[str, float]:
    """Microseconds until the next batch of arrays in memory."""
    m = importlib.import_module(library)
    data = importlib.import_module(f"{library}.utils.data")

    def per_batch(rows: int, width: int, **options: Any) -> float:
        samples = data.TensorDataset(m.randn(20000, width), m.arange(20000) % 10)
        batches = data.DataLoader(samples, batch_size=rows, **options)
        laps = []
        for _ in range(PASSES):
            source = iter(batches)
            for _ in range(len(batches)):
                start = time.perf_counter()
                next(source)
                laps.append(time.perf_counter() - start)
        return statistics.median(laps) * 1e6

    found = {}
    for rows, width in ((32, 20), (64, 784)):
        found[f"{rows}×{width}_us"] = per_batch(rows, width)
        found[f"{rows}×{width}_shuffled_us"] = per_batch(rows, width, shuffle=True)
    return found


if __name__ == "__main__":
    kinds = {"ops": ops, "imports": imports, "loader": loader}
    print(json.dumps(kinds[sys.argv[2]](sys.argv[1]), ensure_ascii=False))
