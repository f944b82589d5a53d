"""No update with gradients that are inf or nan: the weights stay those of the last good update."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import backend
from minitorch.callbacks.callback import Callback, Order
from minitorch.errors import DivergenceError, listed

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class FiniteGradients(Callback):
    """Ends the run before an update whose gradients are not finite, and names their parameters.

    One pass of g·g over the gradients, about a hundredth of a step. On a GPU it runs
    every `log_every_n_steps` updates, because reading the answer waits for the device. Under a loss
    scaler such updates are skipped instead; clipping by norm checks by itself.

    Attributes:
        every_batch: Look at every batch on a GPU, too.
    """

    order = Order.DECIDE
    every_batch = False

    def __init__(self) -> None:
        self._active = True

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        settings = trainer.settings
        by_norm = settings.gradient_clip_val is not None and (
            settings.gradient_clip_algorithm in (None, "norm")
        )
        own_clipping = trainer.overrides("configure_gradient_clipping")
        self._active = trainer.precision.scaler is None and (own_clipping or not by_norm)

    def listens(self, event: str) -> bool:
        if event == "on_before_optimizer_step":
            return self._active
        return super().listens(event)

    def on_before_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        on_host = trainer.placement.device.type == "cpu"
        if not on_host and trainer.global_step % trainer.plan.check_every:
            return
        total: Any = 0.0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                grad = parameter._grad  # the property would be two more calls for each
                if grad is not None:
                    flat = grad._array.reshape(-1)
                    total = total + flat.dot(flat)
        value = float(total if on_host or type(total) is float else backend.to_host(total))
        if not math.isfinite(value) and any(has_bad(p.grad) for p in module.parameters()):
            self.on_bad_gradients(trainer, not_finite(trainer, module))

    def on_bad_loss(self, trainer: Trainer, text: str) -> None:
        """A loss is not finite; `text` is the error's."""
        raise DivergenceError(text)

    def on_bad_gradients(self, trainer: Trainer, text: str) -> None:
        """Gradients are not finite; `text` is the error's."""
        raise DivergenceError(text)


def not_finite(trainer: Trainer, module: TaskModule) -> str:
    """The text of the error, with the names of the parameters."""
    bad = [name for name, p in module.named_parameters() if has_bad(p.grad)]
    position = trainer.position
    return (
        "optimizer step: gradients must be finite. Got inf or nan in the gradients of "
        f"{listed(bad)} (epoch {position.epoch}, batch {position.batch}). The update was not "
        "applied. Trainer(detect_anomaly=True) names the operation; a lower learning rate or "
        "gradient_clip_val helps if training diverged."
    )


def has_bad(grad: Any) -> bool:
    """Whether a gradient holds inf or nan; waits for a GPU."""
    return grad is not None and not bool(np.isfinite(backend.to_host(grad._array)).all())
