"""Where the time of a training step goes: `python breakdown.py WORKLOAD …`.

For each workload the median milliseconds of forward, backward and update, the pages that a step
gets from the system, the sum of its operations, and a table of them by time.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from typing import Any

from workloads import WORKLOADS, Workload

import minitorch as mt
from minitorch.profiler import profile


class Step:
    """A training step by hand that notes when its parts end."""

    def __init__(self, workload: Workload) -> None:
        mt.manual_seed(0)
        self.model = workload.make(mt)
        self.loss = getattr(mt.nn.functional, workload.loss)
        self.optimizer = mt.optim.Adam(self.model.parameters(), lr=1e-3)
        self.data = [workload.batch(mt) for _ in range(8)]
        self.parts: list[tuple[float, float, float]] = []

    def __call__(self, i: int) -> None:
        """The i-th step."""
        x, y = self.data[i % len(self.data)]
        start = time.perf_counter()
        loss = self.loss(self.model(x), y)
        forward = time.perf_counter()
        self.optimizer.zero_grad()
        loss.backward()
        backward = time.perf_counter()
        self.optimizer.step()
        end = time.perf_counter()
        self.parts.append((forward - start, backward - forward, end - backward))


def report(name: str, steps: int, rows: int) -> None:
    """Prints everything of one workload."""
    step = Step(WORKLOADS[name])
    for i in range(5):
        step(i)
    step.parts.clear()
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for i in range(steps):
        step(i)
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - pages
    forward, backward, update = (
        statistics.median(part) * 1e3 for part in zip(*step.parts, strict=True)
    )
    with profile() as recorded:
        for i in range(steps):
            step(i)
    averages: Any = recorded.key_averages()
    inside = sum(event.self_cpu_time_total for event in averages) / steps / 1e3
    print(f"\n{name}: {WORKLOADS[name].text}")
    print(f"forward {forward:.3g} ms, backward {backward:.3g} ms, update {update:.3g} ms")
    print(f"{pages / steps:.1f} new pages a step")
    print(f"operations {inside:.3g} ms a step while profiled, each with its own Python")
    print(averages.table(sort_by="self_cpu_time_total", row_limit=rows))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS), help="default: all")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rows", type=int, default=12)
    args = parser.parse_args()
    for chosen in args.workloads:
        report(chosen, args.steps, args.rows)
