"""Times what all checks together cost a step: `python checks.py [WORKLOAD ...]`.

A fit with the default `Trainer(checks="on")` and one with `checks="off"` run in two threads and
take turns step by step, so that whatever else the machine does meets both. Times are CPU time, with
one thread of kernels. What the first steps cost, in which the flight check looks, stands apart.
"""

import argparse
import os
import statistics
import threading
import time
from typing import Any

for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"

from step import Cycle  # noqa: E402
from workloads import WORKLOADS, Workload  # noqa: E402

import minitorch  # noqa: E402 (the number of threads is read when it is imported)
from minitorch.callbacks import Callback  # noqa: E402
from minitorch.trainer import TaskModule, Trainer  # noqa: E402

LIMITS_PERCENT = {"mlp": 5.0, "cnn": 1.0, "resnet": 1.0, "gpt": 1.0, "lstm": 1.0}
FIRST = 3
"""Steps in which the flight check may still look."""


class Turns(Callback):
    """Lets the other side run between two steps, and keeps the milliseconds of its own side.

    Args:
        mine, other: Free when it is this side's turn, or the other's.
    """

    def __init__(self, mine: threading.Semaphore, other: threading.Semaphore) -> None:
        self.mine, self.other = mine, other
        self.laps: list[float] = []
        self._began = 0.0

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        self.laps.append((time.process_time() - self._began) * 1e3)
        self.other.release()
        self.mine.acquire()
        self._began = time.process_time()


class Task(TaskModule):
    """The step of a workload with one `self.log`."""

    def __init__(self, workload: Workload) -> None:
        super().__init__()
        self.net = workload.make(minitorch)
        self.loss = getattr(minitorch.nn.functional, workload.loss)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        value = self.loss(self.net(batch[0]), batch[1])
        self.log("train/loss", value)
        return value

    def configure_optimizers(self) -> Any:
        return minitorch.optim.Adam(self.parameters(), lr=1e-3)


def fit(workload: Workload, checks: str, turns: Turns, steps: int) -> None:
    """One side; waits for its first turn."""
    turns.mine.acquire()
    try:
        minitorch.manual_seed(0)
        data = Cycle([workload.batch(minitorch) for _ in range(8)], steps + 1)
        off = ("logger", "enable_progress_bar", "enable_checkpointing", "enable_model_summary")
        options = dict.fromkeys(off, False)
        trainer = Trainer(
            max_epochs=1, accelerator="cpu", callbacks=turns, checks=checks, **options
        )
        trainer.fit(Task(workload), data)
    finally:
        turns.other.release()


def side_by_side(workload: Workload, steps: int, order: tuple[str, str]) -> dict[str, list[float]]:
    """The milliseconds of each step with all checks ("on"), and of the same step with none."""
    first, second = threading.Semaphore(1), threading.Semaphore(0)
    sides = {order[0]: Turns(first, second), order[1]: Turns(second, first)}
    threads = [
        threading.Thread(target=fit, args=(workload, checks, turns, steps))
        for checks, turns in sides.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {checks: turns.laps[1:] for checks, turns in sides.items()}


def measure(workload: Workload, steps: int, rounds: int) -> dict[str, float]:
    """Each round has new modules, because where their memory lies counts more than the checks."""
    side_by_side(workload, FIRST, ("on", "off"))  # kernels are compiled and memory is there
    on, off, once = list[float](), list[float](), list[float]()
    for turn in range(rounds):
        laps = side_by_side(workload, FIRST + steps, ("on", "off") if turn % 2 else ("off", "on"))
        once.append(sum(laps["on"][:FIRST]) - sum(laps["off"][:FIRST]))
        on += laps["on"][FIRST:]
        off += laps["off"][FIRST:]
    differences = [a - b for a, b in zip(on, off, strict=True)]
    middle = statistics.median(off)
    kept = sorted(differences)[len(differences) // 10 : -(len(differences) // 10) or None]
    error = statistics.stdev(kept) / len(kept) ** 0.5
    return {
        "checks on, ms": statistics.median(on),
        "off, ms": middle,
        "cost, %": 100 * statistics.mean(kept) / middle,
        "±, %": 100 * error / middle,
        "of minima, %": 100 * (min(on) / min(off) - 1),
        "once, ms": statistics.median(once),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", nargs="*", default=[*LIMITS_PERCENT])
    parser.add_argument("--rounds", type=int, default=8, help="fits of each side")
    parser.add_argument("--steps", type=int, default=0, help="of a fit; default by workload")
    args = parser.parse_args()
    for number, name in enumerate(args.workloads):
        workload = WORKLOADS[name]
        numbers = measure(workload, args.steps or max(8, workload.steps // 4), args.rounds)
        if number == 0:
            print(f"| workload | {' | '.join(numbers)} | limit, % |")
            print("|---" + "|--:" * (len(numbers) + 1) + "|")
        cells = " | ".join(f"{value:.2f}" for value in numbers.values())
        print(f"| {name} | {cells} | {LIMITS_PERCENT.get(name, '')} |", flush=True)


if __name__ == "__main__":
    main()
