"""ThroughputMonitor: batches, samples, tokens and FLOPs per second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import refuse
from minitorch.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

_COUNTED_BATCH = 1  # from here on, not the first one, in which everything is looked at


class ThroughputMonitor(Callback):
    """Logs how fast training is, every `log_every_n_steps` updates, over a window of batches.

    Logged are `train/device/batches_per_sec`, `samples_per_sec`, with length_fn `items_per_sec`
    (tokens), `flops_per_sec`, with available_flops `mfu` (the share of them that is used), and the
    sums `train/time`, `batches`, `samples`, `lengths`. FLOPs are those of products, forward and
    backward, counted in the second batch (the next one if it is left out), which runs eagerly
    under `compile` too; a module with `flops_per_batch` tells its own.
    Validation does not count as time.

    Args:
        batch_size_fn: Samples of a batch; default what the Trainer reads from its tensors.
        length_fn: Items (tokens) of a batch.
        window_size: Batches of the window.
        available_flops: What the device can do per second.
        separator: Between the parts of the names.
    """

    order = Order.MEASURE
    clock: Callable[[], float] = staticmethod(time.perf_counter)

    def __init__(
        self,
        batch_size_fn: Callable[[Any], int] | None = None,
        length_fn: Callable[[Any], int] | None = None,
        *,
        window_size: int = 100,
        available_flops: float | None = None,
        separator: str = "/",
    ) -> None:
        self.batch_size_fn = batch_size_fn
        self.length_fn = length_fn
        self.window_size = window_size
        self.available_flops = available_flops
        self.separator = separator
        self._reset()

    def _reset(self) -> None:
        # (time, batches, samples, lengths) after a batch, in sums.
        self._window: deque[tuple[float, int, float, float]] = deque()
        self._totals = (0.0, 0, 0.0, 0.0)
        self._since = self._pause = 0.0
        self._counted = 0
        self._flops_per_sample: float | None = None
        self._counter: Any = None

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        size = self.window_size
        if isinstance(size, bool) or not isinstance(size, int) or size < 2:
            refuse("ThroughputMonitor", "window_size", size, "an integer ≥ 2")
        if self.available_flops is not None and not self.available_flops > 0:
            refuse("ThroughputMonitor", "available_flops", self.available_flops, "a number > 0")

    def on_train_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._reset()
        self._window = deque([self._totals], maxlen=self.window_size + 1)
        self._since = self.clock()

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        own = getattr(module, "flops_per_batch", None)
        if own is None and self._flops_per_sample is None and self._totals[1] >= _COUNTED_BATCH:
            from minitorch.utils.flop_counter import FlopCounterMode

            self._counter = FlopCounterMode(display=False).__enter__()

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        now = self.clock()
        samples = self._size(trainer, batch)
        length = 0 if self.length_fn is None else self.length_fn(batch)
        seconds, batches, all_samples, lengths = self._totals
        seconds += now - self._since
        self._since = now
        self._totals = (seconds, batches + 1, all_samples + samples, lengths + length)
        self._window.append(self._totals)
        if self._counter is not None:
            self._stop_counting()
            if trainer.current_batch.differentiated:  # else it was left out
                self._flops_per_sample = self._counted / samples
        every, step = trainer.log_every_n_steps, trainer.global_step
        if every and step % every == 0 and trainer.position.window == 0:
            for name, value in self._rates(module).items():
                module.log(
                    f"train/{name}".replace("/", self.separator),
                    value,
                    on_step=True,
                    on_epoch=False,
                )

    def _size(self, trainer: Trainer, batch: Any) -> float:
        if self.batch_size_fn is not None:
            return self.batch_size_fn(batch)
        try:
            return trainer.batch_size
        except DataError as error:
            raise ArgumentError(
                "ThroughputMonitor: the size of a batch must be known. It cannot be read from "
                "this one's tensors. Pass batch_size_fn=lambda batch: ..."
            ) from error

    def on_validation_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._pause = self.clock()

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        self._since += self.clock() - self._pause

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if self._counter is not None:  # an exception came in the counted batch
            self._stop_counting()

    def _stop_counting(self) -> None:
        counter, self._counter = self._counter, None
        counter.__exit__(None, None, None)
        self._counted = counter.get_total_flops()

    def _rates(self, module: TaskModule) -> dict[str, float]:
        first, last = self._window[0], self._window[-1]
        seconds, batches, samples, lengths = (b - a for a, b in zip(first, last, strict=True))
        if seconds <= 0:
            return {}
        rates = {
            "time": last[0],
            "batches": float(last[1]),
            "samples": last[2],
            "device/batches_per_sec": batches / seconds,
            "device/samples_per_sec": samples / seconds,
        }
        if self.length_fn is not None:
            rates |= {"lengths": last[3], "device/items_per_sec": lengths / seconds}
        flops = self._flops(module, batches, samples)
        if flops is not None:
            rates["device/flops_per_sec"] = flops / seconds
            if self.available_flops is not None:
                rates["device/mfu"] = flops / seconds / self.available_flops
        return rates

    def _flops(self, module: TaskModule, batches: float, samples: float) -> float | None:
        own = getattr(module, "flops_per_batch", None)
        if own is not None:
            return float(own() if callable(own) else own) * batches
        return self._flops_per_sample * samples if self._flops_per_sample else None
