"""DataModule: data, with all that is done to it, in one object that any task can train on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from minitorch.errors import ArgumentError, TrainerError
from minitorch.trainer import checkpoint
from minitorch.trainer import hparams as hyper
from minitorch.trainer.attributes import Attributes
from minitorch.trainer.data_hooks import DataHooks

if TYPE_CHECKING:
    from minitorch.device import device
    from minitorch.trainer.checks import Checks
    from minitorch.trainer.trainer import Trainer


class DataModule(hyper.HyperParameters, DataHooks):
    """Everything around data: download, split, loaders, moves. Names are Lightning's.

    `prepare_data` writes files and runs on one process; `setup` builds state from them everywhere.
    `Trainer.fit(task, datamodule=...)` takes its loaders where it defines them, and the task's
    otherwise. State in `state_dict` is part of every checkpoint.

    Attributes:
        trainer: The Trainer of the current or last run, or None.
    """

    trainer: Trainer | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        made._kept = hyper.Kept()  # here, so that a forgotten super().__init__() does no harm
        return made

    def transfer_batch_to_device(self, batch: Any, device: device, dataloader_idx: int) -> Any:
        """Moves a batch; override it for batches of own classes and call super() for the rest."""
        assert self.trainer is not None
        return self.trainer.placement.place(batch)

    def state_dict(self) -> dict[str, Any]:
        """State to save: a tree of tensors, arrays, numbers, strings, lists and dicts."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what `state_dict` returned; called when a fit resumes, before weights load."""

    def on_exception(self, exception: BaseException) -> None:
        """An exception ends the run."""

    def own(self, hook: str) -> Any:
        """The hook, if the user wrote it for this DataModule, else None."""
        method = getattr(self, hook)
        return None if getattr(method, "__func__", method) is getattr(DataModule, hook) else method

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "trainer"}

    @classmethod
    def from_datasets(
        cls,
        train_dataset: Any = None,
        val_dataset: Any = None,
        test_dataset: Any = None,
        predict_dataset: Any = None,
        batch_size: int = 1,
        num_workers: int = 0,
        **datamodule_kwargs: Any,
    ) -> Self:
        """A DataModule over datasets.

        Args:
            train_dataset, val_dataset, test_dataset, predict_dataset: Each one dataset, or several
                as a list or dict.
            batch_size: Samples per batch.
            num_workers: Workers of each loader.
            datamodule_kwargs: For the constructor of a subclass.
        """
        from minitorch.data import DataLoader, IterableDataset

        def loader(dataset: Any, *, shuffle: bool) -> Any:
            if isinstance(dataset, Mapping):
                return {key: loader(one, shuffle=shuffle) for key, one in dataset.items()}
            if isinstance(dataset, Sequence) and not hasattr(dataset, "__getitems__"):
                return [loader(one, shuffle=shuffle) for one in dataset]
            order = None if isinstance(dataset, IterableDataset) else shuffle
            return DataLoader(dataset, batch_size, order, num_workers=num_workers)

        made: Any = cls(**datamodule_kwargs)
        given = {
            "train": train_dataset,
            "val": val_dataset,
            "test": test_dataset,
            "predict": predict_dataset,
        }
        for kind, dataset in given.items():
            if dataset is not None:
                call = _Loader(loader, dataset, shuffle=kind == "train")
                setattr(made, f"{kind}_dataloader", call)
        result: Self = made
        return result

    @classmethod
    def load_from_checkpoint(
        cls,
        checkpoint_path: str | os.PathLike[str],
        map_location: Any = None,
        hparams_file: str | os.PathLike[str] | None = None,
        **overrides: Any,
    ) -> Self:
        """Builds the DataModule from the hyper-parameters and the state of a checkpoint.

        Args:
            checkpoint_path: A file that a Trainer wrote while it had a DataModule of this class.
            map_location: Device of the tensors.
            hparams_file: YAML, JSON or CSV file with hyper-parameters in place of the saved ones.
            overrides: Constructor arguments in place of the saved ones.

        Raises:
            CheckpointError: The file is damaged, or the constructor misses arguments.
        """
        tree = checkpoint.read(checkpoint_path, map_location=map_location)
        saved = tree.get("datamodule_hyper_parameters", {})
        made = hyper.rebuilt(
            cls, saved, tree.get("datamodule_hparams_name"), hparams_file, overrides
        )
        state = tree.get(cls.__qualname__)
        if state is not None:
            made.load_state_dict(state)
        return made


class _Loader:
    """A loader method that makes its loaders anew on each call."""

    def __init__(self, make: Any, dataset: Any, *, shuffle: bool) -> None:
        self.make, self.dataset, self.shuffle = make, dataset, shuffle

    def __call__(self) -> Any:
        return self.make(self.dataset, shuffle=self.shuffle)


def join(run: str, dataloaders: Any, datamodule: Any) -> Any:
    """The source of a run's data from its two arguments: loaders, a DataModule, or None.

    Args:
        run: "fit", "validate", "test" or "predict".
        dataloaders: What was passed as loaders; a DataModule is understood as one.
        datamodule: What was passed as `datamodule`.

    Raises:
        ArgumentError: Both were given, or `datamodule` is none.
    """
    if datamodule is None:
        return dataloaders
    if not isinstance(datamodule, DataModule):
        what = "a class" if isinstance(datamodule, type) else type(datamodule).__name__
        raise ArgumentError(
            f"Trainer.{run}: datamodule must be an object of a subclass of "
            f"minitorch.trainer.DataModule. Got {what}. Derive it from DataModule, or pass loaders."
        )
    if dataloaders is not None:
        raise ArgumentError(
            f"Trainer.{run}: data comes from loaders or from a datamodule. Got both. "
            "Leave one of them out."
        )
    return datamodule


CHECK = "dataset-setup-state-on-one-process"


def prepare(owner: Any, checks: Checks) -> None:
    """Calls `prepare_data`, which must not keep anything in the object.

    Raises:
        TrainerError: It did; the attributes are named, and gone.
    """
    blocks = getattr(owner.prepare_data, "__intended__", ())
    if not checks.on or any(block.allows(CHECK, None) for block in blocks):
        owner.prepare_data()
        return
    before = Attributes(owner)
    hparams = dict(owner.hparams)
    owner.prepare_data()
    found = [f"self.{name}" for name in before.changed()]
    found += ["self.hparams"] if dict(owner.hparams) != hparams else []
    if not found:
        return
    if checks.level != "warn":
        before.restore()
        owner.hparams.clear()
        owner.hparams.update(hparams)
    checks.error(
        CHECK,
        f"{type(owner).__name__}.prepare_data: it runs on one process, so it writes files and "
        f"keeps no state. Got {', '.join(found)} assigned. Move the assignment into "
        "setup(stage), which runs everywhere, and read the files there.",
        TrainerError,
    )
