"""ActivationStatistics: mean, spread and dead units of what modules give."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from minitorch import Tensor, no_grad
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.statistics_rhythm import check_rhythm, log_histogram, next_update_is_due

if TYPE_CHECKING:
    from minitorch.nn import Module
    from minitorch.trainer import TaskModule, Trainer


class ActivationStatistics(Callback):
    """Logs, in every n-th update, what the modules without parts of their own give.

    For each `activation_mean/NAME`, `activation_std/NAME` and `dead_units/NAME`: the share of
    units (channels of images, features otherwise) that are 0 for the whole batch. Hooks are there
    in these updates only, so that others cost one look.

    Args:
        every_n_steps: Updates between two; None for `log_every_n_steps`.
        select: `select(name, module)` says whether to look at a module; default all without parts.
        histograms: Also give the values to loggers that draw distributions.
        max_histogram_values: Values of a histogram at most, evenly chosen.
    """

    order = Order.MEASURE

    def __init__(
        self,
        every_n_steps: int | None = None,
        *,
        select: Callable[[str, Module], bool] | None = None,
        histograms: bool = False,
        max_histogram_values: int = 100_000,
    ) -> None:
        self.every_n_steps = every_n_steps
        self.select = select
        self.histograms = histograms
        self.max_histogram_values = max_histogram_values
        self._handles: list[Any] = []

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        check_rhythm("ActivationStatistics", self.every_n_steps)

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        if not next_update_is_due(trainer, self.every_n_steps) or trainer.position.window:
            return
        for name, part in module.named_modules():
            chosen = not any(True for _ in part.children())
            if self.select is not None:
                chosen = bool(name) and self.select(name, part)
            if chosen and name:
                hook = self._recorder(trainer, module, name)
                self._handles.append(part.register_forward_hook(hook))

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self._remove()

    def teardown(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._remove()

    def _remove(self) -> None:
        while self._handles:
            self._handles.pop().remove()

    def _recorder(self, trainer: Trainer, module: TaskModule, name: str) -> Any:
        def record(part: Module, args: Any, output: Any) -> None:
            if not isinstance(output, Tensor) or not output.is_floating_point():
                return
            if not output.numel():
                return
            with no_grad():
                values = output.detach()
                module.log(f"activation_mean/{name}", values.mean(), on_step=True, on_epoch=False)
                module.log(
                    f"activation_std/{name}", values.std(correction=0), on_step=True, on_epoch=False
                )
                if values.dim() > 1:
                    module.log(f"dead_units/{name}", _dead(values), on_step=True, on_epoch=False)
                if self.histograms:
                    tag = f"activations/{name}"
                    log_histogram(trainer, tag, values, self.max_histogram_values)

        return record


def _dead(values: Tensor) -> Tensor:
    """Share of units that are 0 everywhere: axis 1 of images, the last axis otherwise."""
    unit = 1 if values.dim() > 3 else values.dim() - 1
    others = [axis for axis in range(values.dim()) if axis != unit]
    return (values.abs().amax(others) == 0).float().mean()
