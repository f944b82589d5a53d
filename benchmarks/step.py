"""Times one training step in a fresh process: `python step.py LIBRARY WORKLOAD MODE`.

LIBRARY is minitorch or torch. MODE is `raw` (a loop written by hand), `trainer` (under our Trainer,
or Lightning's), `compile` (by hand, through `compile`: the model, and on our side its loss too) or
`trainer-compile` (our `Trainer(compile=True)`). Prints one line of JSON.
"""

import time

START = time.perf_counter()

import argparse  # noqa: E402 (the clock starts before anything is imported)
import importlib  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import resource  # noqa: E402
import statistics  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from typing import Any  # noqa: E402

from workloads import WORKLOADS, Workload  # noqa: E402


class Laps:
    """The milliseconds of each step after the warm-up, and when the first one ended."""

    def __init__(self, steps: int) -> None:
        self.warm_up = max(5, steps // 10)
        self.total = steps + self.warm_up
        self.laps: list[float] = []
        self.first_step_s = self.cpu_s = 0.0
        self.faults = 0
        self._seen = 0
        self._last = 0.0

    def tick(self) -> None:
        """A step ended, or the first one begins."""
        now = time.perf_counter()
        if self._seen == 1:
            self.first_step_s = now - START
        if self._seen > self.warm_up:
            self.laps.append((now - self._last) * 1e3)
        if self._seen in (self.warm_up, self.total):
            sign = 1 if self._seen == self.total else -1
            used = resource.getrusage(resource.RUSAGE_SELF)
            self.cpu_s += sign * (used.ru_utime + used.ru_stime)
            self.faults += sign * used.ru_minflt
        self._seen += 1
        self._last = time.perf_counter()

    def numbers(self) -> dict[str, float]:
        """What is printed; processor time and pages from the system are means over the steps."""
        return {
            "ms": statistics.median(self.laps),
            "cpu_ms": self.cpu_s * 1e3 / len(self.laps),
            "new_pages": self.faults / len(self.laps),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "first_step_s": self.first_step_s,
        }


class Cycle:
    """A loader of ready batches, so that only the step is measured."""

    def __init__(self, batches: list[Any], total: int) -> None:
        self.batches, self.total = batches, total

    def __len__(self) -> int:
        return self.total

    def __iter__(self) -> Iterator[Any]:
        for i in range(self.total):
            yield self.batches[i % len(self.batches)]


def by_hand(m: Any, model: Any, loss: Any, data: list[Any], laps: Laps, compiled: bool) -> None:
    """The training loop that everyone writes."""
    optimizer = m.optim.Adam(model.parameters(), lr=1e-3)
    call = m.compile(model) if compiled and m.__name__ == "torch" else model

    def evaluate(x: Any, y: Any) -> Any:
        return loss(call(x), y)

    step = m.compile(evaluate) if compiled and m.__name__ != "torch" else evaluate
    laps.tick()
    for x, y in Cycle(data, laps.total):
        value = step(x, y)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        laps.tick()


def under_trainer(
    m: Any, model: Any, loss: Any, data: list[Any], laps: Laps, compiled: bool = False
) -> None:
    """The same step in a task module with one `self.log`."""
    if m.__name__ == "torch":
        from pytorch_lightning import Callback, Trainer
        from pytorch_lightning import LightningModule as Base

        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
        warnings.filterwarnings("ignore")
    else:
        from minitorch.callbacks import Callback
        from minitorch.trainer import TaskModule as Base
        from minitorch.trainer import Trainer

    class Task(Base):
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            value = loss(self.net(batch[0]), batch[1])
            self.log("train/loss", value)
            return value

        def configure_optimizers(self) -> Any:
            return m.optim.Adam(self.parameters(), lr=1e-3)

    class Clock(Callback):
        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:
            laps.tick()

    off = dict.fromkeys(
        ("logger", "enable_progress_bar", "enable_checkpointing", "enable_model_summary"), False
    )
    off |= {"compile": True} if compiled else {}
    trainer = Trainer(max_epochs=1, accelerator="cpu", callbacks=[Clock()], **off)
    trainer.fit(Task(), Cycle(data, laps.total + 1))


def measure(library: str, workload: Workload, mode: str, steps: int) -> dict[str, float]:
    """The numbers of this process."""
    m = importlib.import_module(library)
    m.manual_seed(0)
    model, loss = workload.make(m), getattr(m.nn.functional, workload.loss)
    data = [workload.batch(m) for _ in range(8)]
    laps = Laps(steps or workload.steps)
    if mode.startswith("trainer"):
        under_trainer(m, model, loss, data, laps, mode == "trainer-compile")
    else:
        by_hand(m, model, loss, data, laps, mode == "compile")
    return laps.numbers()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=("minitorch", "torch"))
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("mode", choices=("raw", "trainer", "compile", "trainer-compile"))
    parser.add_argument("--steps", type=int, default=0, help="default: the workload's own number")
    args = parser.parse_args()
    numbers = measure(args.library, WORKLOADS[args.workload], args.mode, args.steps)
    print(json.dumps(numbers))
