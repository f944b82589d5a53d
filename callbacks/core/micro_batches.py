"""Out of memory: the batch runs again in smaller parts, as if it had been split from the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import minitorch
from minitorch import Tensor, backend, no_grad, random
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core import nested
from minitorch.errors import DataError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class MicroBatches(Callback):
    """With `Trainer(on_out_of_memory="split")`: halves the part of a batch that runs at once.

    When forward or backward run out of memory, random state, gradients, buffers and what the step
    logged go back to the start of the batch, and it runs again in parts of half the samples, each
    weighted by its count. Later batches begin with the size that was found. `training_step` sees
    the parts one after the other under the same batch_idx; attributes that it sets itself are not
    put back, and batch normalisation sees the statistics of the parts. Step values in the log are
    means of the parts by their samples (or as `reduce_fx` says), as the outputs for hooks are.

    Attributes:
        samples: Most samples that run at once; None as long as every batch fitted.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self.samples: int | None = None
        self._told = ""

    def around(
        self, trainer: Trainer, learn: Callable[[TaskModule, Any, int], Any]
    ) -> Callable[[TaskModule, Any, int], Any]:
        """`learn`, which runs a batch forward and backward, for batches that may not fit."""

        def learn_in_parts(module: TaskModule, batch: Any, batch_idx: int) -> Any:
            start = _Start(trainer, module)
            while True:
                try:
                    outputs = self._parts(trainer, learn, module, batch, batch_idx)
                    break
                except MemoryError as error:
                    size = _size(batch)
                    part = min(size, self.samples or size)
                    if part < 2:
                        raise
                    came = f"{type(error).__name__}: {error}".rstrip(": ")
                self.samples = -(-part // 2)
                self._tell(trainer, size, came)
                start.go_back(trainer, module)  # after the error, whose frames hold the tensors
            trainer.see_batch(batch)
            return outputs

        return learn_in_parts

    def _parts(
        self,
        trainer: Trainer,
        learn: Callable[[TaskModule, Any, int], Any],
        module: TaskModule,
        batch: Any,
        batch_idx: int,
    ) -> Any:
        most = self.samples
        if most is None or (size := _size(batch)) <= most:
            return learn(module, batch, batch_idx)
        parts = []
        with trainer.metric_log.in_parts() as logged:
            for first in range(0, size, most):
                end = min(first + most, size)
                logged.begin(end - first)
                part = split(batch, size, first, end)
                trainer.see_batch(part)
                outputs = learn(module, part, batch_idx)
                parts.append((outputs, trainer.accumulation.weight))
        return _joined(parts)

    def _tell(self, trainer: Trainer, size: int, came: str) -> None:
        text = (
            f"Trainer: a batch of {size} samples ran out of memory ({came}). It runs again in "
            f"parts of {self.samples}, and so do later ones; the gradients are those of the batch."
        )
        found = trainer.checks.found
        if self._told in found:
            found[found.index(self._told)] = text
        else:
            trainer.print(text)
            found.append(text)
        self._told = text

    def state_dict(self) -> dict[str, Any]:
        return {} if self.samples is None else {"samples": self.samples}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.samples = state_dict["samples"]


class _Start:
    """What a step changes, as it was before: to begin it again."""

    def __init__(self, trainer: Trainer, module: TaskModule) -> None:
        self.learned = trainer.position.learned
        self.random = random.state_dict()
        self.sums = trainer.accumulation.snapshot()
        self.buffers = [(b, b.detach().clone()) for b in module.buffers()]
        self.gradients: list[tuple[Tensor, Any]] = []
        if self.learned:
            for p in module.parameters():
                self.gradients.append((p, None if p.grad is None else p.grad.detach().clone()))

    def go_back(self, trainer: Trainer, module: TaskModule) -> None:
        """Puts everything back."""
        trainer.position.learned = self.learned
        random.load_state_dict(self.random)
        trainer.accumulation.restore(self.sums)
        trainer.metric_log.rewind_batch()
        with no_grad():
            for buffer, value in self.buffers:
                buffer.copy_(value)
        if not self.learned:
            for p in module.parameters():
                p.grad = None
        if trainer.device.type != "cpu":
            backend.get("cuda").xp.get_default_memory_pool().free_all_blocks()
        for parameter, gradient in self.gradients:
            parameter.grad = None if gradient is None else gradient.clone()


def split(batch: Any, size: int, first: int, end: int) -> Any:
    """Samples `first` to `end` of a batch.

    Args:
        batch: Containers of tensors; those with `size` samples along their first axis are cut.
        size: Samples in the batch.
        first: Number of the first sample, from 0.
        end: Number behind the last one.
    """

    def cut(leaf: Any) -> Any:
        return leaf[first:end] if leaf.ndim and leaf.shape[0] == size else leaf

    return nested.map_leaves(batch, cut)


def _size(batch: Any) -> int:
    """Samples in a batch; 0 where its tensors do not agree on one number."""
    try:
        return int(nested.batch_size(batch))
    except DataError:
        return 0


def _joined(parts: list[tuple[Any, Any]]) -> dict[str, Any]:
    """The outputs of a batch from those of its parts: means of numbers, and samples together."""
    total = sum(weight for _, weight in parts)
    joined: dict[str, Any] = {}
    for key in parts[-1][0]:
        values = [(outputs[key], weight) for outputs, weight in parts if key in outputs]
        last = values[-1][0]
        if isinstance(last, Tensor) and last.ndim:
            joined[key] = minitorch.cat([value for value, _ in values])
        elif isinstance(last, float) or (isinstance(last, Tensor) and last.is_floating_point()):
            joined[key] = sum(value * (weight / total) for value, weight in values)
        else:
            joined[key] = last
    return joined
