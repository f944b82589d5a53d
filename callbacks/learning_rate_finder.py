"""LearningRateFinder: sets the learning rate by a short trial at the start of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class LearningRateFinder(Callback):
    """Runs `Tuner.lr_find` before the optimizers are made, so that they start with what it found.

    Weights, random numbers and the task's attributes are then as before. A resumed run keeps the
    rate of its checkpoint. Arguments are those of `Tuner.lr_find`.

    Args:
        min_lr, max_lr: First and last rate.
        num_training_steps: Updates of the trial.
        mode: "exponential" or "linear".
        early_stop_threshold: Ends once the loss is so many times the best one; None for never.
        update_attr: Write the suggestion into the task.
        attr_name: Attribute or hyper-parameter that holds the rate.

    Attributes:
        optimal_lr: What the trial found, with `results`, `suggestion()` and `plot()`.
    """

    order = Order.DECIDE

    def __init__(
        self,
        min_lr: float = 1e-8,
        max_lr: float = 1,
        num_training_steps: int = 100,
        mode: str = "exponential",
        early_stop_threshold: float | None = 4.0,
        update_attr: bool = True,
        attr_name: str = "",
    ) -> None:
        self.optimal_lr: Any = None
        self._options = {
            "min_lr": min_lr,
            "max_lr": max_lr,
            "num_training": num_training_steps,
            "mode": mode,
            "early_stop_threshold": early_stop_threshold,
            "update_attr": update_attr,
            "attr_name": attr_name,
        }

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit" and not trainer.resumed:
            self.lr_find(trainer, module)

    def lr_find(self, trainer: Trainer, module: TaskModule) -> None:
        """Runs the trial; a subclass may decide when."""
        self.optimal_lr = trainer.tuner.find_rate_inside(**self._options)
