"""Where the batches of a run come from: what was passed, or the hooks of DataModule and module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from minitorch.errors import DataError
from minitorch.trainer import processes
from minitorch.trainer.intervals import batches_between
from minitorch.trainer.loaders import Batches, as_loader, first_batches, holds_loaders
from minitorch.trainer.task import overrides

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer


def from_hook(trainer: Trainer, hook: str) -> Any:
    """What a loader hook returns: the DataModule's where it has one, else the module's."""
    own = None if trainer.datamodule is None else trainer.datamodule.own(hook)
    return getattr(trainer.module, hook)() if own is None else own()


def missing(trainer: Trainer, run: str, argument: str, hook: str) -> DataError:
    """The error of a run without data."""
    owners = [type(o).__name__ for o in (trainer.datamodule, trainer.module) if o is not None]
    what = "training data" if run == "fit" else "data"
    return DataError(
        f"Trainer.{run}: {what} is missing. Pass {argument}, or define {hook} in "
        f"{' or '.join(owners)}."
    )


class FitSources:
    """The data of a fit, as given.

    Args:
        trainer: The run.
        train, val: What was passed; None for the hooks.
        batch_size: For data that is not batched yet.
    """

    def __init__(self, trainer: Trainer, train: Any, val: Any, batch_size: int) -> None:
        self.trainer = trainer
        self.train = train
        self.val = val
        self.batch_size = batch_size
        self.taken_in = 0

    def take(self) -> None:
        """Makes the loaders of the trainer.

        Raises:
            DataError: There is no training data, or nothing is left of it.
        """
        trainer, s = self.trainer, self.trainer.settings
        self.taken_in = trainer.current_epoch
        self._take_train()
        if s.overfit_batches:
            few = first_batches(trainer.train_data, s.overfit_batches)
            trainer.train_data = _plain(few, "train_dataloaders")
            trainer.val_data = [_plain(few, "val_dataloaders")]
            given = self.val
        else:
            given = from_hook(trainer, "val_dataloader") if self.val is None else self.val
            limit = int(s.fast_dev_run) or s.limit_val_batches
            trainer.val_data = eval_batches(
                given, limit, self.batch_size, "val_dataloaders", "limit_val_batches"
            )
        if trainer.val_data and not overrides(trainer.module, "validation_step"):
            if given is not None and (self.val is not None or trainer.datamodule is None):
                trainer.module.validation_step(None, 0)
            trainer.val_data = []
        trainer.validations.every = batches_between(trainer)

    def _take_train(self) -> None:
        trainer, s = self.trainer, self.trainer.settings
        train = from_hook(trainer, "train_dataloader") if self.train is None else self.train
        if train is None:
            raise missing(trainer, "fit", "train_dataloaders", "train_dataloader")
        loader = as_loader(
            train, batch_size=self.batch_size, shuffle=True, name="train_dataloaders"
        )
        limit = int(s.fast_dev_run) or s.limit_train_batches
        trainer.train_data = Batches(
            loader, limit, name="train_dataloaders", argument="limit_train_batches"
        )
        if trainer.train_data.count == 0:
            raise DataError(
                f"Trainer: limit_train_batches={limit!r} leaves no batch to train on. "
                "Raise it, or call validate."
            )

    @property
    def due(self) -> bool:
        """Whether `reload_dataloaders_every_n_epochs` asks for new loaders now."""
        every = self.trainer.settings.reload_dataloaders_every_n_epochs
        return bool(every) and self.trainer.current_epoch - self.taken_in >= every

    def reload(self) -> None:
        """Makes the loaders anew from the hooks; those that were passed stay."""
        self.trainer.train_data.close()
        self.take()


class EvalSources:
    """The data of an evaluation, as given.

    Args:
        trainer: The run.
        hook: Name of the loader hook.
        data: What was passed; None for the hook.
        limit: Name of the argument that limits the batches.
        batch_size: For data that is not batched yet.
    """

    def __init__(self, trainer: Trainer, hook: str, data: Any, limit: str, batch_size: int) -> None:
        self.trainer = trainer
        self.hook = hook
        self.data = data
        self.limit = limit
        self.batch_size = batch_size

    def take(self) -> None:
        """Makes the loaders of the trainer.

        Raises:
            DataError: There is no data.
        """
        trainer = self.trainer
        source = from_hook(trainer, self.hook) if self.data is None else self.data
        if source is None:
            raise missing(trainer, str(trainer.stage), "dataloaders", self.hook)
        limit = int(trainer.settings.fast_dev_run) or getattr(trainer.settings, self.limit)
        trainer.eval_data = eval_batches(source, limit, self.batch_size, "dataloaders", self.limit)

    reload = take


def _plain(batches: list[Any], name: str) -> Batches:
    return Batches(batches, None, name=name, argument="overfit_batches")


def eval_batches(
    source: Any, limit: int | float | None, batch_size: int, name: str, argument: str
) -> list[Batches]:
    """The loaders of an evaluation: a list or dict with DataLoaders or Datasets gives several."""
    if source is None or limit == 0:
        return []
    if getattr(source, "mode", None) == "sequential" and hasattr(source, "flattened"):
        sources = source.flattened
    elif holds_loaders(source):
        sources = list(source.values() if isinstance(source, Mapping) else source)
    else:
        sources = [source]
    loaders = [as_loader(one, batch_size=batch_size, shuffle=False, name=name) for one in sources]
    loaders = [processes.deal(loader, name) for loader in loaders]
    return [Batches(loader, limit, name=name, argument=argument) for loader in loaders]
