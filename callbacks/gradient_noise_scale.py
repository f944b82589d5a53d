"""How large a batch is worth it: the gradient noise scale, from accumulated batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from minitorch import backend
from minitorch.callbacks.callback import Callback
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class GradientNoiseScale(Callback):
    """Logs `gradient_noise_scale`, the simple noise scale tr(Σ) / |G|² in samples.

    Far smaller batches waste updates' precision, far larger ones waste samples. It is estimated
    from the gradients of the batches of a window, n_i samples each, and that of the window, of N:

        E|g_i|² = |G|² + tr(Σ) / n_i      E|g|² = |G|² + tr(Σ) / N

    Both unknowns are averaged over measurements before they are divided. A measurement keeps one
    copy of the gradients, and on a GPU waits for their norms.

    Args:
        every_n_updates: Updates between two measurements.
        decay: Weight of the past in the running averages, in [0, 1).

    Attributes:
        noise: Running average of tr(Σ), times samples.
        signal: Running average of |G|².

    Raises:
        ArgumentError: A window has one batch only, there are several optimizers, or an argument is
            out of range; raised when the fit starts.

    Source: An Empirical Model of Large-Batch Training, McCandlish et al., 2018, appendix A.1.
    """

    def __init__(self, every_n_updates: int = 10, decay: float = 0.95) -> None:
        self.every_n_updates = every_n_updates
        self.decay = decay
        self.noise = self.signal = 0.0
        self._before: list[Any] = []
        # For each backward pass of the window the square of its gradient's norm, and its samples.
        self._squares: dict[int, tuple[float, float]] = {}
        self._first = 0.0

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        if type(self.every_n_updates) is not int or self.every_n_updates < 1:
            _refuse("every_n_updates must be an integer ≥ 1", repr(self.every_n_updates))
        if not isinstance(self.decay, int | float) or not 0 <= self.decay < 1:
            _refuse("decay must be in [0, 1)", repr(self.decay))
        if len(trainer.optimizers) != 1 or not module.automatic_optimization:
            automatic = "automatic" if module.automatic_optimization else "manual"
            _refuse(
                "it measures the one optimizer of automatic optimization",
                f"{len(trainer.optimizers)} optimizers of {automatic} optimization",
                " Losses of several have gradients of different noise: measure a task with one of "
                "them, or leave the callback out.",
            )
        if trainer.accumulation.batches < 2:
            _refuse(
                "it compares the batches of a window with the whole",
                f"accumulate_grad_batches={trainer.accumulation.batches}",
                " Pass 2 or more to the Trainer.",
            )

    def _measures(self, trainer: Trainer) -> bool:
        return trainer.position.windows % self.every_n_updates == 0

    def on_window_start(self, trainer: Trainer, module: TaskModule) -> None:
        self._squares = {}

    def on_before_backward(self, trainer: Trainer, module: TaskModule, loss: Tensor) -> None:
        if self._measures(trainer):
            self._before = [array.copy() for array in _gradients(trainer.active[0])]

    def on_after_backward(self, trainer: Trainer, module: TaskModule) -> None:
        if not self._measures(trainer):
            return
        arrays = _gradients(trainer.active[0])
        before, self._before = self._before or [0.0] * len(arrays), []
        weight = float(trainer.accumulation.weight)
        scale = trainer.precision.scaler.get_scale() if trainer.precision.scaler else 1.0
        added = sum(_square(a - b) for a, b in zip(arrays, before, strict=True))
        if not self._squares:
            self._first = trainer.loss_count
        number = trainer.position.learned
        self._squares[number] = (added / (weight * scale) ** 2, weight * self._first)

    def on_before_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        pairs, self._squares = list(self._squares.values()), {}
        if len(pairs) < 2 or not self._measures(trainer):
            return
        small = sum(square for square, _ in pairs) / len(pairs)
        per_small = sum(1.0 / n for _, n in pairs) / len(pairs)
        large = sum(_square(array) for array in _gradients(optimizer))
        per_large = 1.0 / sum(n for _, n in pairs)
        noise = (small - large) / (per_small - per_large)
        signal = large - noise * per_large
        if not math.isfinite(noise + signal):
            return  # the loss scaler is about to leave this update out
        keep = self.decay
        self.noise = keep * self.noise + (1 - keep) * noise
        self.signal = keep * self.signal + (1 - keep) * signal
        if self.signal > 0:
            module.log("gradient_noise_scale", self.noise / self.signal)

    def state_dict(self) -> dict[str, Any]:
        squares = [[number, *pair] for number, pair in self._squares.items()]
        state = {"noise": self.noise, "signal": self.signal, "first": self._first}
        return {**state, "squares": squares}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.noise, self.signal = state_dict["noise"], state_dict["signal"]
        self._first = state_dict["first"]
        self._squares = {number: (square, n) for number, square, n in state_dict["squares"]}


def _gradients(optimizer: Optimizer) -> list[Any]:
    params = [p for group in optimizer.param_groups for p in group["params"]]
    return [p.grad._array for p in params if p.grad is not None]


def _square(array: Any) -> float:
    flat = array.reshape(-1)
    return float(backend.to_host(flat.dot(flat)))


def _refuse(rule: str, came: str, fix: str = "") -> None:
    raise ArgumentError(f"GradientNoiseScale: {rule}. Got {came}.{fix}")
