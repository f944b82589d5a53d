"""What both sides of a comparison share: how to time, and the shape of the workloads."""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

MLP_STEPS = 1500
TINY_STEPS = 3000
WARMUP = 100
OP_CALLS = 2000
OP_ROUNDS = 15


class Cycle:
    """A loader of ready batches, so that only the step is measured."""

    def __init__(self, batches: Sequence[Any], steps: int) -> None:
        self.batches, self.steps = batches, steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Any]:
        for i in range(self.steps):
            yield self.batches[i % len(self.batches)]


def clock(base: type) -> Any:
    """A callback of either Trainer that notes the microseconds between two batch starts."""

    class Clock(base):
        def __init__(self) -> None:
            super().__init__()
            self.last, self.laps = 0.0, []

        def on_train_batch_start(self, trainer, module, batch, batch_idx) -> None:
            now = time.perf_counter()
            self.laps.append((now - self.last) * 1e6)
            self.last = now

        def median(self) -> float:
            return statistics.median(self.laps[WARMUP:])

    return Clock()


def per_step(step: Callable[[int], Any], steps: int) -> float:
    """Median microseconds of `step(i)` after a warm-up."""
    laps = []
    for i in range(steps):
        start = time.perf_counter()
        step(i)
        laps.append((time.perf_counter() - start) * 1e6)
    return statistics.median(laps[WARMUP:])


def per_call(function: Callable[[], Any]) -> float:
    """Nanoseconds of one call: the median over rounds of many calls."""
    rounds = []
    for _ in range(OP_ROUNDS):
        start = time.perf_counter_ns()
        for _ in range(OP_CALLS):
            function()
        rounds.append((time.perf_counter_ns() - start) / OP_CALLS)
    return statistics.median(rounds)


def main(workloads: dict[str, Callable[[], dict[str, float]]]) -> None:
    """Runs the workload named on the command line and prints its numbers as one line of JSON."""
    print(json.dumps(workloads[sys.argv[1]]()))
