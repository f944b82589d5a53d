"""Tuner: finds a learning rate and a batch size by short trial runs that leave no trace."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.callbacks.callback import Callback
from minitorch.errors import ArgumentError, TrainerError
from minitorch.trainer.data_module import join
from minitorch.trainer.trial import built, trial, untouched

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

SMOOTHING = 0.98
RATE_NAMES = ("lr", "learning_rate")
STAGES = ("fit", "validate", "test", "predict")


class Tuner:
    """Finds settings with a Trainer's own options; names and arguments are Lightning's.

    A trial runs in a Trainer of its own. Afterwards weights, buffers, attributes, metrics and
    random numbers are exactly what they were; the Trainer itself is not touched.

    Args:
        trainer: The Trainer that will train with what is found.
    """

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer

    def lr_find(
        self,
        model: TaskModule,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        dataloaders: Any = None,
        datamodule: Any = None,
        method: str = "fit",
        min_lr: float = 1e-8,
        max_lr: float = 1,
        num_training: int = 100,
        mode: str = "exponential",
        early_stop_threshold: float | None = 4.0,
        update_attr: bool = True,
        attr_name: str = "",
    ) -> LRFinder:
        """Trains with a rising learning rate and suggests the one where the loss falls fastest.

        Args:
            model: The task, with one optimizer.
            train_dataloaders, datamodule: As for `fit`.
            val_dataloaders, dataloaders: Accepted and not read.
            method: "fit".
            min_lr, max_lr: First and last rate.
            num_training: Updates.
            mode: "exponential" or "linear" between them.
            early_stop_threshold: Ends once the loss is so many times the best one; None for never.
            update_attr: Write the suggestion into the task.
            attr_name: Attribute or hyper-parameter that holds the rate; default `lr` or
                `learning_rate`.

        Raises:
            ArgumentError: An argument is outside of its rule, or the attribute does not exist.
        """
        _check_rates(method, min_lr, max_lr, num_training, mode, early_stop_threshold)
        data = join("fit", train_dataloaders, datamodule)
        names = (attr_name,) if attr_name else RATE_NAMES
        setters = _setters(names, model, _module_of(data)) if update_attr or attr_name else []
        if update_attr and not setters:
            _refuse_attribute("lr_find", names, model)
        finder = LRFinder(mode, min_lr, max_lr, num_training)
        sweep = _Sweep(finder, early_stop_threshold)
        with untouched(model, _module_of(data)):
            run = trial(self.trainer, model, sweep, max_steps=num_training)
            try:
                result = run.fit(model, data)
            except TrainerError as error:
                if not finder.results["loss"] or "must be finite" not in str(error):
                    raise
            else:
                _pass_on_interrupt(result)
        if update_attr:
            found = finder.suggestion()
            if found is None:
                self.trainer.print("Tuner: too few finite losses; the learning rate stays.")
            else:
                for put in setters:
                    put(found)
                self.trainer.print(f"Tuner: the learning rate is set to {found:.6g}")
        return finder

    def scale_batch_size(
        self,
        model: TaskModule,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        dataloaders: Any = None,
        datamodule: Any = None,
        method: str = "fit",
        mode: str = "power",
        steps_per_trial: int = 3,
        init_val: int = 2,
        max_trials: int = 25,
        batch_arg_name: str = "batch_size",
        margin: float = 0.05,
        max_val: int = 8192,
    ) -> int:
        """Finds the largest batch size that fits into memory, and writes it into the task.

        Args:
            model: The task. Its loaders (or the DataModule's) must come from their hooks, and use
                the attribute.
            train_dataloaders, val_dataloaders, dataloaders: Must be left out.
            datamodule: As for `fit`.
            method: The run to try: "fit", "validate", "test" or "predict".
            mode: "power" doubles until memory ends; "binsearch" then halves the interval.
            steps_per_trial: Batches of a trial.
            init_val: First size.
            max_trials: Most trials.
            batch_arg_name: Attribute or hyper-parameter that holds the size.
            margin: Share that "binsearch" stays below the largest size that fits.
            max_val: Largest size to try.

        Returns:
            The size.

        Raises:
            ArgumentError: An argument is outside of its rule, or the attribute is not there or not
                used by the loader.
            MemoryError: Not even one sample fits.
        """
        given = (train_dataloaders, val_dataloaders, dataloaders)
        if any(one is not None for one in given):
            raise ArgumentError(
                "scale_batch_size: loaders are made anew for each size, by their hooks. Got loaders"
                " themselves. Define train_dataloader in the module, or pass a datamodule."
            )
        _check_sizes(method, mode, steps_per_trial, init_val, max_trials, margin, max_val)
        data = join(method, None, datamodule)
        owner = data if data is not None else model
        setters = _setters((batch_arg_name,), owner, *([model] if data is not None else []))
        if not setters:
            _refuse_attribute("scale_batch_size", (batch_arg_name,), owner)

        def fits(size: int) -> tuple[bool, float]:
            for put in setters:
                put(size)
            return self._try_size(model, data, method, steps_per_trial, size)

        found = _search(fits, mode, init_val, max_trials, margin, max_val)
        for put in setters:
            put(found)
        self.trainer.print(f"Tuner: {batch_arg_name} is set to {found}")
        return found

    def _try_size(
        self, model: TaskModule, data: Any, method: str, steps: int, size: int
    ) -> tuple[bool, float]:
        """Whether a size fits, and the samples that there are (inf if unknown)."""
        with untouched(model, data):
            if method == "fit":
                changed: dict[str, Any] = {"max_steps": steps}
            else:
                kind = {"validate": "val"}.get(method, method)
                changed = {f"limit_{kind}_batches": steps}
            run = trial(self.trainer, model, **changed)
            try:
                if method == "fit":
                    _pass_on_interrupt(run.fit(model, data))
                elif method == "predict":
                    run.predict(model, data, return_predictions=False)
                else:
                    getattr(run, method)(model, data, verbose=False)
            except MemoryError:  # CuPy's is one, too
                gc.collect()
                return False, math.inf
            loader = run.train_data.loader if method == "fit" else run.eval_data[0].loader
            used = getattr(loader, "batch_size", size)
            if used != size:
                raise ArgumentError(
                    f"scale_batch_size: the loader must use the attribute. Got batches of {used} "
                    f"where it was set to {size}. Build the loader in its hook, from the attribute."
                )
            samples: Any = getattr(loader, "dataset", None)
            return True, len(samples) if hasattr(samples, "__len__") else math.inf

    # For the callbacks, inside of a run that has built its module.

    def find_rate_inside(self, **options: Any) -> LRFinder:
        """`lr_find` on the data of the fit that is being set up."""
        trainer = self.trainer
        module, data = trainer.module, trainer.datamodule
        sources: Any = trainer.sources
        passed = data if sources.train is None else sources.train
        with built(module, data):
            return self.lr_find(module, passed, **options)

    def find_size_inside(self, stage: str, **options: Any) -> int:
        """`scale_batch_size` for the run that is being set up, which then gets new loaders."""
        trainer = self.trainer
        module, data = trainer.module, trainer.datamodule
        sources: Any = trainer.sources
        passed = sources.train if stage == "fit" else sources.data
        with built(module, data):
            size = self.scale_batch_size(
                module, dataloaders=passed, datamodule=data, method=stage, **options
            )
        sources.reload()
        return size


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


def _search(
    fits: Callable[[int], tuple[bool, float]],
    mode: str,
    size: int,
    trials: int,
    margin: float,
    most: int,
) -> int:
    """The largest size that fits, within so many trials."""
    good, bad = 0, math.inf
    for _ in range(trials):
        size = int(min(size, most))
        ok, samples = fits(size)
        if ok:
            good, most = max(good, size), int(min(most, samples))
            if good >= most:
                return most
        else:
            bad = min(bad, size)
        if bad <= 1:
            raise MemoryError("scale_batch_size: not even a batch of one sample fits.")
        if good and math.isfinite(bad) and (mode == "power" or bad - good <= 1):
            break
        if math.isinf(bad):
            size = 2 * good
        else:
            size = int((good + bad) // 2) if mode == "binsearch" else int(bad // 2)
    if not good:
        raise MemoryError(f"scale_batch_size: nothing fitted within {trials} trials.")
    if mode == "binsearch" and math.isfinite(bad):
        return max(1, int(good * (1 - margin)))
    return good


def _module_of(data: Any) -> Any:
    return data if hasattr(data, "_kept") else None


def _setters(names: tuple[str, ...], *owners: Any) -> list[Callable[[Any], None]]:
    """One function for each place that has the first of these names that exists."""
    for name in names:
        found: list[Callable[[Any], None]] = []
        for owner in owners:
            if owner is None:
                continue
            if hasattr(owner, name):
                found.append(partial(setattr, owner, name))
            if name in owner.hparams:
                found.append(partial(owner.hparams.__setitem__, name))
        if found:
            return found
    return []


def _refuse_attribute(where: str, names: tuple[str, ...], owner: Any) -> None:
    raise ArgumentError(
        f"{where}: the value is written into an attribute or a hyper-parameter. "
        f"{type(owner).__name__} has no {' and no '.join(names)}. Add it and use it, or name "
        f"another with {'attr_name' if where == 'lr_find' else 'batch_arg_name'}."
    )


def _pass_on_interrupt(result: Any) -> None:
    if result.status == "interrupted":
        raise KeyboardInterrupt


def _check_rates(
    method: str, low: float, high: float, steps: int, mode: str, threshold: float | None
) -> None:
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


def _check_sizes(
    method: str, mode: str, steps: int, first: int, trials: int, margin: float, most: int
) -> None:
    where = "scale_batch_size"
    if method not in STAGES:
        raise ArgumentError(f"{where}: method must be one of {', '.join(STAGES)}. Got {method!r}.")
    if mode not in ("power", "binsearch"):
        raise ArgumentError(f'{where}: mode must be "power" or "binsearch". Got {mode!r}.')
    counts = {"steps_per_trial": steps, "init_val": first, "max_trials": trials, "max_val": most}
    for name, value in counts.items():
        if type(value) is not int or value < 1:
            raise ArgumentError(f"{where}: {name} must be an integer ≥ 1. Got {value!r}.")
    if not 0 <= margin < 1:
        raise ArgumentError(f"{where}: margin must be a share in [0, 1). Got {margin!r}.")
