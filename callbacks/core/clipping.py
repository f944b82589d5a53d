"""Gradient clipping, after unscaling and right before the update."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.core.finite import not_finite
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer

_LIMIT = "gradient_clip_val"


class GradientClipping(Callback):
    """Clips by norm or value at `Order.DECIDE`: callbacks before it see the unclipped gradients.

    A parameter group with a limit of its own, `{"params": ..., "gradient_clip_val": 0.5}`, is
    clipped by itself, the other groups of its optimizer together to the limit of the Trainer.

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
            trainer = self._trainer
            optimizers = [] if trainer is None else trainer.optimizers
            return self._active or any(_LIMIT in g for o in optimizers for g in o.param_groups)
        return super().listens(event)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        for optimizer in trainer.optimizers:
            for group in optimizer.param_groups:
                limit = group.get(_LIMIT, 1.0)
                if type(limit) not in (int, float) or not limit > 0:
                    raise ArgumentError(
                        f"configure_optimizers: {_LIMIT} of a parameter group must be a number > "
                        f"0. Got {limit!r}. Leave it out for the limit of the Trainer."
                    )

    def on_before_optimizer_step(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer
    ) -> None:
        settings = trainer.settings
        algorithm = settings.gradient_clip_algorithm or "norm"
        if self._overridden:
            module.configure_gradient_clipping(optimizer, settings.gradient_clip_val, algorithm)
        else:
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
        limit: float | None,
        algorithm: str,
    ) -> None:
        """Clips the gradients of an optimizer's parameters in place, without their loss scale.

        Args:
            trainer: The Trainer of the run; its precision removes the scale.
            module: Whose parameters an error names.
            optimizer: Whose gradients are clipped.
            limit: Largest norm, or largest absolute value, for groups without a limit of their own.
            algorithm: "norm" or "value".

        Raises:
            DivergenceError: The gradient norm is not finite.
        """
        trainer.precision.unscale(optimizer)
        together: list[Any] = []
        for group in optimizer.param_groups:
            if _LIMIT not in group:
                together += group["params"]
            elif not self._clip_all(group["params"], group[_LIMIT], algorithm):
                self._refuse(trainer, module)
        if limit is not None and together and not self._clip_all(together, limit, algorithm):
            self._refuse(trainer, module)

    @staticmethod
    def _clip_all(parameters: list[Any], limit: float, algorithm: str) -> bool:
        """Clips them together; False if their norm is not finite."""
        from minitorch.nn.utils import clip_grad_norm_, clip_grad_value_

        if algorithm == "value":
            clip_grad_value_(parameters, limit)
            return True
        try:
            clip_grad_norm_(parameters, limit, error_if_nonfinite=True)
        except RuntimeError:
            return False
        return True

    @staticmethod
    def _refuse(trainer: Trainer, module: TaskModule) -> None:
        if trainer.precision.scaler is None:  # or it leaves the update out
            trainer.finite.on_bad_gradients(trainer, not_finite(trainer, module))
