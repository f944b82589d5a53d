"""How the cost of a training step grows with width, depth, batch, sequence length and parameters.

`python scaling.py` runs minitorch and PyTorch in turn, A B A B, each in a process of its own, and
writes results/scaling.svg (curves) and results/scaling.md (slopes). Without a PyTorch it
measures minitorch alone.
A slope is d log(ms) / d log(size) between two neighbours: 1 is linear.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from run import environment_for, facts, find_peer
from workloads import gpt

HERE = Path(__file__).parent
SECONDS = 0.25  # of each point, after the warm-up


@dataclass(frozen=True)
class Axis:
    """One quantity that grows.

    Attributes:
        text: What grows and what stays.
        sizes: Its values.
        make: `make(m, size)` builds the module.
        batch: `batch(m, size)` draws inputs and targets.
        order: The power of the size that the work has in the end.
    """

    text: str
    sizes: tuple[int, ...]
    make: Callable[[ModuleType, int], Any]
    batch: Callable[[ModuleType, int], tuple[Any, Any]]
    order: float


def _mlp(m: ModuleType, width: int, depth: int) -> Any:
    layers: list[Any] = []
    for _ in range(depth):
        layers += [m.nn.Linear(width, width), m.nn.ReLU()]
    return m.nn.Sequential(*layers, m.nn.Linear(width, 10))


def _vectors(m: ModuleType, count: int, width: int) -> tuple[Any, Any]:
    return m.randn(count, width), m.randint(0, 10, (count,))


def _texts(m: ModuleType, count: int, length: int) -> tuple[Any, Any]:
    return m.randint(0, 96, (count, length)), m.randint(0, 96, (count * length,))


AXES = {
    "width": Axis(
        "width of an MLP of 3 layers, batch of 64",
        (32, 64, 128, 256, 512, 1024),
        *(lambda m, n: _mlp(m, n, 3), lambda m, n: _vectors(m, 64, n), 2.0),
    ),
    "depth": Axis(
        "layers of an MLP of width 128, batch of 64",
        (1, 2, 4, 8, 16, 32, 64),
        *(lambda m, n: _mlp(m, 128, n), lambda m, n: _vectors(m, 64, 128), 1.0),
    ),
    "batch": Axis(
        "batch of an MLP of 3 layers of width 256",
        (1, 8, 32, 128, 512, 2048),
        *(lambda m, n: _mlp(m, 256, 3), lambda m, n: _vectors(m, n, 256), 1.0),
    ),
    "length": Axis(
        "tokens of a GPT of 4 layers of width 64, batch of 2",
        (16, 32, 64, 128, 256, 512),
        *(lambda m, n: gpt(96, n, 64, 4)(m), lambda m, n: _texts(m, 2, n), 2.0),
    ),
    "parameters": Axis(
        "parameters of a linear layer, one sample: the optimizer's work",
        (10_000, 100_000, 1_000_000, 10_000_000),
        *(lambda m, n: m.nn.Linear(n // 100, 100), lambda m, n: _vectors(m, 1, n // 100), 1.0),
    ),
}


def measure(library: str) -> dict[str, list[float]]:
    """Milliseconds of a step for each axis and size."""
    m = importlib.import_module(library)
    m.manual_seed(0)
    return {
        name: [step_ms(m, axis.make(m, size), axis.batch(m, size)) for size in axis.sizes]
        for name, axis in AXES.items()
    }


def step_ms(m: Any, model: Any, batch: tuple[Any, Any]) -> float:
    """The median of forward, backward and Adam's update."""
    optimizer = m.optim.Adam(model.parameters(), lr=1e-3)
    x, y = batch
    laps: list[float] = []
    warm_up = 3
    begin = time.perf_counter()
    while len(laps) < 5 or time.perf_counter() - begin < SECONDS:
        start = time.perf_counter()
        loss = m.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        laps.append((time.perf_counter() - start) * 1e3)
        if warm_up:
            warm_up -= 1
            laps.clear()
            begin = time.perf_counter()
    return statistics.median(laps)


def slopes(sizes: tuple[int, ...], values: list[float]) -> list[float]:
    """The slope between each size and the next."""
    pairs = list(zip(sizes, values, strict=True))
    return [
        math.log(t1 / t0) / math.log(n1 / n0)
        for (n0, t0), (n1, t1) in zip(pairs, pairs[1:], strict=False)
    ]


def page(sides: dict[str, dict[str, list[float]]], machine: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = [
        "# How the cost of a step grows",
        "",
        "Written by `benchmarks/scaling.py`. Milliseconds of forward, backward and Adam's update; "
        "the slope is that of log(ms) over log(size) to the next size, and each headline says "
        "which slope the work itself has in the end.",
        "",
        ", ".join(f"{name} {machine[name]}" for name in ("time", "cpu", "cores", "threads")),
        "",
        "![curves](scaling.svg)",
        "",
    ]
    for name, axis in AXES.items():
        heads = [f"{side} ms | slope" for side in sides]
        lines += [f"**{name}**: {axis.text} (slope of the work: {axis.order:g})", ""]
        lines += [f"| {name} | {' | '.join(heads)} |", "|--:" * (1 + 2 * len(sides)) + "|"]
        columns = []
        for values in sides.values():
            steep = [f"{slope:.2f}" for slope in slopes(axis.sizes, values[name])] + [""]
            columns.append([f"{v:.3g} | {s}" for v, s in zip(values[name], steep, strict=True)])
        for size, *cells in zip(axis.sizes, *columns, strict=True):
            lines.append(f"| {size} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def plot(sides: dict[str, dict[str, list[float]]], path: Path) -> None:
    """One panel for each axis, logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "scaling"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(AXES), figsize=(4 * len(AXES), 3.4))
    for panel, (name, axis) in zip(panels, AXES.items(), strict=True):
        for side, values in sides.items():
            panel.loglog(axis.sizes, values[name], marker="o", label=side)
        panel.set_xlabel(name)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("ms per step")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="processes of each side")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(measure(args.side)))
        return
    peer, reason = find_peer(args.peer)
    pythons = {"minitorch": sys.executable} | ({"torch": peer} if peer else {})
    if peer is None:
        print(f"Measuring without PyTorch: {reason}.")
    machine = facts(args.threads)
    runs: dict[str, list[dict[str, list[float]]]] = {side: [] for side in pythons}
    for _ in range(args.rounds):
        for side, python in pythons.items():
            command = [python, __file__, "--side", side]
            text = subprocess.check_output(command, env=environment_for(args.threads), text=True)
            runs[side].append(json.loads(text.splitlines()[-1]))
    sides = {
        side: {
            name: [statistics.median(v) for v in zip(*(run[name] for run in found), strict=True)]
            for name in AXES
        }
        for side, found in runs.items()
    }
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    plot(sides, folder / "scaling.svg")
    (folder / "scaling.md").write_text(page(sides, machine))
    print(page(sides, machine))


if __name__ == "__main__":
    main()
