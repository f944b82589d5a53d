"""The learning rate finder: one run in which the rate rises with every update."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.callbacks.callback import Callback
from minitorch.errors import ArgumentError, TrainerError
from minitorch.trainer.data_module import DataModule
from minitorch.trainer.trial import pass_on_interrupt, trial, untouched

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

SMOOTHING = 0.98


class LRFinder:
    """What `Tuner.lr_find` found.

    Attributes:
        results: "lr", and "loss" after smoothing, one of each per update.
    """

    def __init__(self, mode: str, lr_min: float, lr_max: float, num_training: int) -> None:
        self.mode = mode
        self.lr_min = lr_min
        self.lr_max = lr_max
        self.num_training = num_training
        self.results: dict[str, list[float]] = {"lr": [], "loss": []}
        self._best: int | None = None

    def rate(self, step: int) -> float:
        """The learning rate of an update, from the first, 0, to the last, `num_training` - 1."""
        share = step / max(1, self.num_training - 1)
        if self.mode == "linear":
            return self.lr_min + share * (self.lr_max - self.lr_min)
        return float(self.lr_min * (self.lr_max / self.lr_min) ** share)

    def suggestion(self, skip_begin: int = 10, skip_end: int = 1) -> float | None:
        """The rate where the loss falls fastest; None with fewer than two finite losses.

        Args:
            skip_begin, skip_end: Updates to leave out at both ends.
        """
        stop = len(self.results["loss"]) - skip_end
        losses = np.array(self.results["loss"][skip_begin:stop])
        rates = np.array(self.results["lr"][skip_begin:stop])
        finite = np.isfinite(losses)
        if finite.sum() < 2:
            self._best = None
            return None
        losses, rates = losses[finite], rates[finite]
        axis = rates if self.mode == "linear" else np.log10(rates)
        best = int(np.gradient(losses, axis).argmin())
        self._best = skip_begin + int(np.flatnonzero(finite)[best])
        return float(rates[best])

    def plot(self, suggest: bool = False, show: bool = False, ax: Any = None) -> Any:
        """Draws loss against rate.

        Args:
            suggest: Mark the suggestion.
            show: Open a window.
            ax: Axes to draw in; default: a new figure.

        Returns:
            The figure.

        Raises:
            ImportError: matplotlib is missing.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(
                "LRFinder.plot needs matplotlib. Install minitorch-trainer[examples]."
            ) from error
        figure: Any
        if ax is None:
            figure, ax = plt.subplots()
        else:
            figure = ax.figure
        ax.plot(self.results["lr"], self.results["loss"])
        if self.mode == "exponential":
            ax.set_xscale("log")
        ax.set_xlabel("Learning rate")
        ax.set_ylabel("Loss")
        if suggest and self.suggestion() is not None and self._best is not None:
            place = self.results["lr"][self._best], self.results["loss"][self._best]
            ax.plot(*place, markersize=10, marker="o", color="red")
        if show:
            plt.show()
        return figure


def sweep(
    trainer: Trainer,
    model: TaskModule,
    data: Any,
    finder: LRFinder,
    early_stop_threshold: float | None,
) -> None:
    """Trains a task with the rates of a finder, which gets the losses; nothing of it stays.

    Args:
        trainer: The settings of the run.
        model: The task.
        data: What `fit` takes.
        finder: Its rates are tried.
        early_stop_threshold: Ends once the loss is so many times the best one; None for never.
    """
    with untouched(model, data if isinstance(data, DataModule) else None):
        run = trial(
            trainer, model, _Sweep(finder, early_stop_threshold), max_steps=finder.num_training
        )
        try:
            result = run.fit(model, data)
        except TrainerError as error:
            if not finder.results["loss"] or "must be finite" not in str(error):
                raise
        else:
            pass_on_interrupt(result)


class _Sweep(Callback):
    """Raises the learning rate with every update, and keeps the loss."""

    def __init__(self, finder: LRFinder, threshold: float | None) -> None:
        self.finder = finder
        self.threshold = threshold
        self.mean = 0.0
        self.best = math.inf
        self.losses: list[float] = []

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        if len(trainer.optimizers) != 1:
            raise ArgumentError(
                f"lr_find: one optimizer has one learning rate to find. Got "
                f"{len(trainer.optimizers)}. Set their rates by hand."
            )
        trainer.lr_scheduler_configs.clear()

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        if trainer.position.window == 0:
            self.losses = []
            for group in trainer.optimizers[0].param_groups:
                group["lr"] = self.finder.rate(trainer.global_step)

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if loss is None:
            raise ArgumentError(
                "lr_find: training_step must return the loss. Got None. Return it, also with "
                "manual optimization."
            )
        self.losses.append(float(loss))
        if trainer.position.window:
            return
        results, now = self.finder.results, sum(self.losses) / len(self.losses)
        step = len(results["loss"])
        self.mean = SMOOTHING * self.mean + (1 - SMOOTHING) * now
        smooth = self.mean / (1 - SMOOTHING ** (step + 1))
        results["lr"].append(self.finder.rate(step))
        results["loss"].append(smooth)
        if self.threshold is not None and step > 1 and smooth > self.threshold * self.best:
            trainer.stop("the loss has grown")
        self.best = min(self.best, smooth)


def check(
    method: str, low: float, high: float, steps: int, mode: str, threshold: float | None
) -> None:
    """Refuses arguments of `lr_find` that are outside of their rules."""
    if method != "fit":
        raise ArgumentError(f'lr_find: method must be "fit". Got {method!r}.')
    if not 0 < low < high:
        raise ArgumentError(f"lr_find: 0 < min_lr < max_lr must hold. Got {low}, {high}.")
    if type(steps) is not int or steps < 2:
        raise ArgumentError(f"lr_find: num_training must be an integer ≥ 2. Got {steps!r}.")
    if mode not in ("exponential", "linear"):
        raise ArgumentError(f'lr_find: mode must be "exponential" or "linear". Got {mode!r}.')
    if threshold is not None and not threshold > 1:
        raise ArgumentError(f"lr_find: early_stop_threshold must be > 1. Got {threshold!r}.")
