"""GradientStatistics: norms of gradients and weights, and how far an update moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch import no_grad
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.statistics_rhythm import check_rhythm, log_histogram, next_update_is_due

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class GradientStatistics(Callback):
    """Logs, in every n-th update, how large gradients are and how far weights move.

    For each parameter `grad_norm/NAME`, `weight_norm/NAME` and `update_ratio/NAME`, the norm of
    the change over that of the weight (about 1e-3 is usual); for all together `grad_norm/total`,
    which is what clipping compares with its limit. Gradients are unscaled means, before clipping.
    Norms are computed on the device and read with the other metrics. Other updates cost one look.

    Args:
        every_n_steps: Updates between two; None for `log_every_n_steps`.
        per_parameter: False for the total only.
        histograms: Also give gradients and weights to loggers that draw distributions.
        max_histogram_values: Values of a histogram at most, evenly chosen.
    """

    order = Order.MEASURE

    def __init__(
        self,
        every_n_steps: int | None = None,
        *,
        per_parameter: bool = True,
        histograms: bool = False,
        max_histogram_values: int = 100_000,
    ) -> None:
        self.every_n_steps = every_n_steps
        self.per_parameter = per_parameter
        self.histograms = histograms
        self.max_histogram_values = max_histogram_values
        self._names: dict[int, str] = {}
        self._before: list[tuple[str, Tensor, Tensor]] = []

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        check_rhythm("GradientStatistics", self.every_n_steps)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._names = {id(p): name for name, p in module.named_parameters()}

    def on_before_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        self._before = []
        if not next_update_is_due(trainer, self.every_n_steps):
            return
        with no_grad():
            total: Any = 0.0
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        total = total + self._look(trainer, module, parameter)
            module.log("grad_norm/total", total**0.5, on_step=True, on_epoch=False)

    def _look(self, trainer: Trainer, module: TaskModule, parameter: Tensor) -> Any:
        """Logs what there is of one parameter; the square of its gradient's norm."""
        gradient: Any = parameter.grad
        norm = gradient.norm()
        name = self._names.get(id(parameter), "unnamed")
        if self.per_parameter:
            module.log(f"grad_norm/{name}", norm, on_step=True, on_epoch=False)
            self._before.append((name, parameter, parameter.detach().clone()))
        if self.histograms:
            log_histogram(trainer, f"gradients/{name}", gradient, self.max_histogram_values)
            log_histogram(trainer, f"weights/{name}", parameter, self.max_histogram_values)
        return norm * norm

    def on_after_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        before, self._before = self._before, []
        with no_grad():
            for name, parameter, old in before:
                weight = old.norm()
                change = (parameter.detach() - old).norm()
                module.log(f"weight_norm/{name}", weight, on_step=True, on_epoch=False)
                module.log(
                    f"update_ratio/{name}", change / (weight + 1e-12), on_step=True, on_epoch=False
                )
