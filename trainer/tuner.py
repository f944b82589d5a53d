"""Tuner: finds a learning rate and a batch size by short trial runs that leave no trace."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch.errors import ArgumentError
from minitorch.trainer import rate_finder, size_finder
from minitorch.trainer.data_module import DataModule, join
from minitorch.trainer.rate_finder import LRFinder
from minitorch.trainer.trial import built

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

RATE_NAMES = ("lr", "learning_rate")


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
        rate_finder.check(method, min_lr, max_lr, num_training, mode, early_stop_threshold)
        data = join("fit", train_dataloaders, datamodule)
        names = (attr_name,) if attr_name else RATE_NAMES
        owners = [model, data] if isinstance(data, DataModule) else [model]
        setters = _setters(names, *owners) if update_attr or attr_name else []
        if update_attr and not setters:
            _refuse_attribute("lr_find", names, model)
        finder = LRFinder(mode, min_lr, max_lr, num_training)
        rate_finder.sweep(self.trainer, model, data, finder, early_stop_threshold)
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
        size_finder.check(method, mode, steps_per_trial, init_val, max_trials, margin, max_val)
        data = join(method, None, datamodule)
        owner = data if data is not None else model
        setters = _setters((batch_arg_name,), owner, *([model] if data is not None else []))
        if not setters:
            _refuse_attribute("scale_batch_size", (batch_arg_name,), owner)

        def fits(size: int) -> tuple[bool, float]:
            for put in setters:
                put(size)
            return size_finder.fits(
                self.trainer, model, data, method=method, steps=steps_per_trial, size=size
            )

        found = size_finder.search(fits, mode, init_val, max_trials, margin, max_val)
        for put in setters:
            put(found)
        self.trainer.print(f"Tuner: {batch_arg_name} is set to {found}")
        return found

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


def _setters(names: tuple[str, ...], *owners: Any) -> list[Callable[[Any], None]]:
    """One function for each place that has the first of these names that exists."""
    for name in names:
        found: list[Callable[[Any], None]] = []
        for owner in owners:
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
