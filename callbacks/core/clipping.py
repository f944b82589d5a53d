"""Gradient clipping, after unscaling and right before the update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core.finite import not_finite
from minitorch.errors import ArgumentError, TrainerError

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer


class GradientClipping(Callback):
    """Clips by norm or value at `Order.DECIDE`: callbacks before it see the unclipped gradients.

    A norm that is not finite ends the run and names the parameters (under a loss scaler such an
    update is skipped anyway); the weights stay those of the last good update.
    """

    order = Order.DECIDE

    def __init__(self) -> None:
        self._active = False
        self._overridden = False

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        self._overridden = trainer.overrides("configure_gradient_clipping")
        self._active = self._overridden or trainer.settings.gradient_clip_val is not None

    def listens(self, event: str) -> bool:
        if event == "on_before_optimizer_step":
            return self._active
        return super().listens(event)

    def on_before_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        settings = trainer.settings
        algorithm = settings.gradient_clip_algorithm or "norm"
        if self._overridden:
            module.configure_gradient_clipping(optimizer, settings.gradient_clip_val, algorithm)
        elif settings.gradient_clip_val is not None:
            self.clip(trainer, module, optimizer, settings.gradient_clip_val, algorithm)

    def chosen(self, trainer: Trainer, limit: float | None, algorithm: str | None) -> Any:
        """Limit and algorithm of a call of `clip_gradients`; what is None is the Trainer's.

        Raises:
            ArgumentError: One is given and the Trainer has another one.
        """
        settings, found = trainer.settings, []
        for name, given in (("gradient_clip_val", limit), ("gradient_clip_algorithm", algorithm)):
            own = getattr(settings, name)
            if given is not None and own is not None and given != own:
                raise ArgumentError(
                    f"clip_gradients: {name} is set in one place. Got {given!r} here and {own!r} "
                    "in Trainer(...). Remove one of them; without arguments the Trainer's is used."
                )
            found.append(own if given is None else given)
        return found[0], found[1] or "norm"

    def clip(
        self,
        trainer: Trainer,
        module: TaskModule,
        optimizer: Optimizer,
        limit: float,
        algorithm: str,
    ) -> None:
        """Clips the gradients of an optimizer's parameters in place, without their loss scale.

        Args:
            limit: Largest norm, or largest absolute value.
            algorithm: "norm" or "value".

        Raises:
            TrainerError: The gradient norm is not finite.
        """
        from minitorch.nn.utils import clip_grad_norm_, clip_grad_value_

        trainer.precision.unscale(optimizer)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if algorithm == "value":
            clip_grad_value_(parameters, limit)
            return
        try:
            clip_grad_norm_(parameters, limit, error_if_nonfinite=True)
        except RuntimeError as error:
            if trainer.precision.scaler is None:
                raise TrainerError(not_finite(trainer, module)) from error
