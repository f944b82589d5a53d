"""The names of Lightning 2.6 that exist here, and those that do not, with the reason."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest
from toy_tasks import Regression, arrays, loader, quiet

from minitorch.callbacks import Callback
from minitorch.trainer import DataModule, TaskModule, Trainer

SCRIPT = Path(__file__).parents[2] / "scripts" / "lightning.py"
spec = importlib.util.spec_from_file_location("lightning_page", SCRIPT)
assert spec is not None
assert spec.loader is not None
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)
TABLE = page.table()


@pytest.fixture(scope="module")
def lightning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torch")
        return pytest.importorskip("pytorch_lightning")


def test_the_page_is_up_to_date() -> None:
    assert page.PAGE.read_text() == page.text(), "run python scripts/lightning.py"


@pytest.mark.parametrize("kind", TABLE)
def test_every_name_is_here_or_has_a_reason(kind: str) -> None:
    assert not [name for name, (here, note) in TABLE[kind].items() if not here and not note]
    notes = tomllib.loads(page.NAMES.read_text())[kind]["notes"]
    assert notes.keys() <= TABLE[kind].keys(), "notes of names that are no names of Lightning"


@pytest.mark.parametrize("kind", TABLE)
def test_no_name_of_lightning_is_forgotten(kind: str, lightning: Any) -> None:
    import pytorch_lightning.cli as lightning_cli
    import torch

    bases = {"module": torch.nn.Module}
    homes = {
        "trainer": lightning.Trainer,
        "module": lightning.LightningModule,
        "datamodule": lightning.LightningDataModule,
        "callback": lightning.Callback,
    }
    constructors = {"argument": lightning.Trainer, "cli_argument": lightning_cli.LightningCLI}
    packages = {"callbacks": lightning.callbacks, "loggers": lightning.loggers}
    packages["profilers"] = lightning.profilers
    if kind == "package":
        modules = {found.name for found in pkgutil.iter_modules(lightning.__path__)}
        inner = {
            "_graveyard",
            "core",
            "loops",
            "serve",
            "trainer",
            "demos",
            "__setup__",
            "__version__",
            "__about__",
        }
        theirs = {*lightning.__all__, *modules} - inner
    elif kind in packages:
        theirs = set(packages[kind].__all__)
    elif kind == "cli":
        own = [o for o in vars(lightning_cli).values() if inspect.isclass(o) or callable(o)]
        names = {o.__name__ for o in own if getattr(o, "__module__", "") == lightning_cli.__name__}
        theirs = {name for name in names if not name.startswith("_")} - {"ReduceLROnPlateau"}
    elif kind in constructors:
        theirs = set(inspect.signature(constructors[kind]).parameters) - {"kwargs"}
    else:
        names = set(dir(homes[kind])) - set(dir(bases.get(kind, object)))
        theirs = {name for name in names if not name.startswith("_") and name.islower()}
    assert theirs == TABLE[kind].keys()


def test_callbacks_take_the_same_arguments(lightning: Any) -> None:
    for name, theirs in vars(lightning.Callback).items():
        if not name.startswith("_") and callable(theirs):
            ours = inspect.signature(getattr(Callback, name)).parameters
            assert len(ours) == len(inspect.signature(theirs).parameters), name


def test_the_package_stands_in_for_lightnings() -> None:
    import minitorch.callbacks
    import minitorch.loggers
    import minitorch.trainer as pl

    assert (pl.LightningModule, pl.LightningDataModule) == (TaskModule, DataModule)
    assert (pl.callbacks, pl.loggers) == (minitorch.callbacks, minitorch.loggers)
    assert pl.Callback is Callback
    from minitorch.trainer import cli

    assert (cli.LightningCLI, cli.LightningArgumentParser) == (cli.TrainerCLI, cli.CLIParser)


def test_module_paths_of_lightning_are_the_modules_that_are_here() -> None:
    import minitorch.trainer.callbacks as callbacks_there
    import minitorch.trainer.loggers as loggers_there
    from minitorch import callbacks, loggers, trainer
    from minitorch.callbacks.early_stopping import EarlyStopping
    from minitorch.trainer import profilers
    from minitorch.trainer.callbacks.early_stopping import EarlyStopping as there
    from minitorch.trainer.profilers import SimpleProfiler

    assert callbacks_there is callbacks
    assert loggers_there is loggers
    assert there is EarlyStopping
    assert EarlyStopping.__module__ == "minitorch.callbacks.early_stopping"
    assert callbacks.__spec__ is not None
    assert callbacks.__spec__.name == "minitorch.callbacks"
    assert trainer.profilers is profilers
    assert trainer.SimpleProfiler is SimpleProfiler


MODULES = {
    "utilities": "'minitorch.trainer.utilities'. seed_everything, CombinedLoader and freeze are in",
    "utilities.types": "'minitorch.trainer.utilities'",
    "strategies": "groups of processes are in minitorch.distributed",
    "PyTorchProfiler": "It is OpsProfiler",
    "nothing": "^No module named 'minitorch.trainer.nothing'$",
    "callbacks.nothing": "^No module named 'minitorch.callbacks.nothing'$",
}


@pytest.mark.parametrize("path", MODULES)
def test_absent_modules_say_where_they_are(path: str) -> None:
    with pytest.raises(ImportError, match=MODULES[path]):
        importlib.import_module(f"minitorch.trainer.{path}")


def test_imports_of_absent_names_say_where_they_are() -> None:
    with pytest.raises(ImportError, match="It is OpsProfiler"):
        exec("from minitorch.trainer import PyTorchProfiler")
    with pytest.raises(ImportError, match="cannot import name 'Trianer'"):
        exec("from minitorch.trainer import Trianer")


HINTS = {
    ("trainer", "LightningTrainer"): "has no attribute 'LightningTrainer'. It is Trainer.",
    ("trainer", "LightningCLI"): "It is in minitorch.trainer.cli",
    ("trainer", "RichProgressBar"): "It is in minitorch.callbacks.",
    ("trainer", "TensorBoardLogger"): "It is in minitorch.loggers.",
    ("trainer", "PyTorchProfiler"): "It is OpsProfiler",
    ("trainer", "utilities"): "are in minitorch.trainer itself",
    ("trainer", "Trianer"): "Did you mean 'Trainer'?",
    ("callbacks", "Checkpoint"): "Derive from Callback with order = Order.PERSIST",
    ("callbacks", "CSVLogger"): "Look in minitorch.loggers.",
    ("callbacks", "SimpleProfiler"): "Look in minitorch.trainer.",
    ("callbacks", "LightningCLI"): "It is in minitorch.trainer.cli.",
    ("callbacks", "EarlyStoping"): "Did you mean 'EarlyStopping'?",
    ("loggers", "CometLogger"): "There are CSVLogger, .* For another service derive from Logger.",
    ("loggers", "Rows"): "There are CSVLogger, ",
}


@pytest.mark.parametrize(("package", "name"), HINTS)
def test_absent_names_say_where_they_are(package: str, name: str) -> None:
    module = importlib.import_module(f"minitorch.{package}")
    with pytest.raises(AttributeError, match=HINTS[package, name]):
        getattr(module, name)
    with pytest.raises(AttributeError, match="has no attribute '__nothing__'$"):
        _ = module.__nothing__


NOT_TAKEN = {
    "weights_only": "files are read without running code",
    "storage_options": "files are local",
    "sync_dist_group": "there is one process",
    "metric_attribute": "metric objects are found by themselves",
    "args": "any others",
    "kwargs": "any others",
    "enable_graph": "kept losses do not keep graphs",
    "cls": "bound",
}


@pytest.mark.parametrize("kind", ["trainer", "module", "datamodule"])
def test_arguments_of_methods_have_the_same_names(kind: str, lightning: Any) -> None:
    theirs, ours = {
        "trainer": (lightning.Trainer, Trainer),
        "module": (lightning.LightningModule, TaskModule),
        "datamodule": (lightning.LightningDataModule, DataModule),
    }[kind]
    for name, (here, _) in TABLE[kind].items():
        method = getattr(theirs, name)
        if here and callable(method) and name != "log_dict":  # which hands on all it gets
            wanted = set(inspect.signature(method).parameters) - set(NOT_TAKEN)
            assert wanted <= set(inspect.signature(getattr(ours, name)).parameters), name


def test_named_arguments_work(tmp_path: Any) -> None:
    class Task(Regression):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log_dict(dictionary={"x": 1.0})

    trainer, task = quiet(max_epochs=1), Task()
    trainer.fit(model=task, train_dataloaders=loader(8), val_dataloaders=loader(4))
    assert trainer.validate(model=task, dataloaders=loader(4), verbose=False) == [{"x": 1.0}]
    assert trainer.test(model=task, dataloaders=loader(4), verbose=False)
    assert trainer.predict(model=task, dataloaders=[arrays(4)[0]])
    trainer.save_checkpoint(filepath=tmp_path / "x.ckpt")
    assert (tmp_path / "x.ckpt").exists()


def test_batch_hooks_may_leave_out_the_loader() -> None:
    seen: list[str] = []

    class Short(Callback):
        def on_validation_batch_start(  # type: ignore[override]
            self, trainer: Any, module: Any, batch: Any, batch_idx: int
        ) -> None:
            seen.append(f"start {batch_idx}")

        def on_validation_batch_end(  # type: ignore[override]
            self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            seen.append(f"end {batch_idx}")

        def on_test_batch_end(self, *args: Any) -> None:
            seen.append(f"all {len(args)}")

    class Task(Regression):
        def on_validation_batch_end(  # type: ignore[override]
            self, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            seen.append(f"module {batch_idx}")

        def on_test_batch_start(self, batch: Any, batch_idx: int, dataloader_idx: int = 7) -> None:
            seen.append(f"loader {dataloader_idx}")

    trainer = quiet(callbacks=Short())
    trainer.validate(Task(), loader(4), verbose=False)
    trainer.test(Task(), loader(4), verbose=False)
    assert seen == ["start 0", "end 0", "module 0", "loader 0", "all 6"]
