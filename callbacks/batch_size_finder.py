"""BatchSizeFinder: sets the batch size by short trials at the start of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class BatchSizeFinder(Callback):
    """Runs `Tuner.scale_batch_size` before a run, which then gets loaders of the size it found.

    Weights, random numbers and the task's other attributes are then as before. Arguments are those
    of `Tuner.scale_batch_size`.

    Args:
        mode: "power" or "binsearch".
        steps_per_trial: Batches of a trial.
        init_val: First size.
        max_trials: Most trials.
        batch_arg_name: Attribute or hyper-parameter that holds the size.
        margin: Share that "binsearch" stays below the largest size that fits.
        max_val: Largest size to try.

    Attributes:
        optimal_batch_size: What the trials found.
    """

    order = Order.DECIDE

    def __init__(
        self,
        mode: str = "power",
        steps_per_trial: int = 3,
        init_val: int = 2,
        max_trials: int = 25,
        batch_arg_name: str = "batch_size",
        margin: float = 0.05,
        max_val: int = 8192,
    ) -> None:
        self.optimal_batch_size: int | None = None
        self._options: dict[str, Any] = {
            "mode": mode,
            "steps_per_trial": steps_per_trial,
            "init_val": init_val,
            "max_trials": max_trials,
            "batch_arg_name": batch_arg_name,
            "margin": margin,
            "max_val": max_val,
        }

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if not trainer.resumed:
            self.scale_batch_size(trainer, module)

    def scale_batch_size(self, trainer: Trainer, module: TaskModule) -> None:
        """Runs the trials; a subclass may decide when."""
        stage = str(trainer.stage)
        self.optimal_batch_size = trainer.tuner.find_size_inside(stage, **self._options)
