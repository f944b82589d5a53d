"""The command line: what it reads, what it makes of it, and what it saves."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from toy_tasks import Regression, loader

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback, EarlyStopping
from minitorch.errors import ArgumentError
from minitorch.trainer import DataModule, TaskModule, Trainer

pytest.importorskip("jsonargparse", reason="the command line needs jsonargparse (extra cli)")

from minitorch.trainer.cli import CLI, SaveConfigCallback, TrainerCLI


class Net(TaskModule):
    """Leaves its optimizer to the command line."""

    def __init__(self, width: int = 4, act: str = "tanh") -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x: Any) -> Any:
        return self.net(x[0])

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return (self(batch) - batch[1]).square().mean()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val", (self(batch) - batch[1]).square().mean())

    test_step = validation_step


class Wide(Net):
    """A subclass to choose."""

    def __init__(self, width: int = 32, extra: int = 1) -> None:
        super().__init__(width)
        self.extra = extra


class Data(DataModule):
    """Four loaders."""

    def __init__(self, batch_size: int = 4, features: int = 0) -> None:
        self.save_hyperparameters()

    def train_dataloader(self) -> Any:
        return loader(batch_size=self.hparams.batch_size)

    def val_dataloader(self) -> Any:
        return [[mt.ones(2, 3), mt.zeros(2, 1)]] * 6

    test_dataloader = predict_dataloader = val_dataloader


QUIET = ["--trainer.enable_progress_bar=false", "--trainer.max_epochs=1"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _same_seeds() -> Any:
    from minitorch.trainer import isolate_rng

    with isolate_rng():
        yield


def cli(*args: str, **options: Any) -> Any:
    options.setdefault("model_class", Net)
    options.setdefault("datamodule_class", Data)
    command = list(args)
    if command and not command[0].startswith("-"):
        command[1:1] = QUIET[: 2 if command[0] == "fit" else 1]
    return TrainerCLI(args=command, **options)


def test_fit_with_optimizer_and_schedule() -> None:
    run = cli(
        *("fit", "--model.width=7", "--data.batch_size", "6"),
        *("--optimizer=SGD", "--optimizer.lr=0.5"),
        *("--lr_scheduler=StepLR", "--lr_scheduler.step_size=1", "--lr_scheduler.gamma=0.5"),
    )
    assert run.result.status == "completed"
    assert (run.model.hparams.width, run.datamodule.hparams.batch_size) == (7, 6)
    (optimizer,) = run.trainer.optimizers
    assert type(optimizer) is mt.optim.SGD
    assert optimizer.param_groups[0]["lr"] == 0.25
    assert run.trainer.num_training_batches == 4


@pytest.mark.parametrize("stage", ["validate", "test", "predict"])
def test_the_other_runs(stage: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = [] if stage == "predict" else ["--verbose=false"]
    run = cli(stage, *options)
    if stage == "predict":
        assert len(run.result) == 6
        assert "predict: 6 batches, the first f32[" in capsys.readouterr().out
    else:
        assert run.result[0].keys() == {"val"}
        assert "val" not in capsys.readouterr().out


def test_the_saved_configuration_repeats_the_run() -> None:
    first = cli("fit", "--model.width=5", "--optimizer=Adam", "--seed_everything=3")
    text = Path("config.yaml").read_text()
    assert "width: 5" in text
    assert "seed_everything: 3" in text
    again = cli("fit", "--config=config.yaml")
    assert Path("config-v1.yaml").read_text() == text
    for name, value in first.model.state_dict().items():
        assert mt.equal(value, again.model.state_dict()[name])
    assert cli("validate", "--config=config.yaml", "--model.width=6").model.hparams.width == 6


class FewArguments(Trainer):
    """Has none of the variables' arguments."""

    def __init__(self, enable_progress_bar: bool = False, callbacks: Any = None) -> None:
        super().__init__(max_epochs=2, enable_progress_bar=enable_progress_bar, callbacks=callbacks)


def test_variables_are_defaults_that_are_saved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PL_TRAINER_LIMIT_TRAIN_BATCHES", "3")
    monkeypatch.setenv("PL_TRAINER_MAX_EPOCHS", "7")
    run = cli("fit", "--optimizer=SGD", "--optimizer.lr=0.1")
    assert (run.trainer.global_step, run.trainer.max_epochs) == (3, 1)
    assert "limit_train_batches: 3" in Path("config.yaml").read_text()
    assert "Trainer: limit_train_batches=3 from the environment" in capsys.readouterr().out
    own = cli(run=False, trainer_class=FewArguments).trainer
    assert (own.max_epochs, own.settings.limit_train_batches) == (2, 3)
    monkeypatch.setenv("PL_TRAINER_MAX_EPOCH", "7")
    with pytest.raises(ArgumentError, match="Did you mean PL_TRAINER_MAX_EPOCHS"):
        cli("fit")


def test_print_config(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli("fit", "--model.width=9", "--print_config")
    assert ended.value.code == 0
    assert "width: 9" in capsys.readouterr().out


BAD: dict[str, tuple[list[str], str]] = {
    "type": (["fit", "--model.width=wide"], r"model.width"),
    "name": (["fit", "--model.widht=3"], r"widht"),
    "no run": (["train"], r"train"),
    "optimizer": (["fit", "--optimizer=Adamm"], r"Adamm"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_the_parser_refuses(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    args, message = BAD[case]
    with pytest.raises(SystemExit) as ended:
        cli(*args)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_callbacks_and_loggers_by_name() -> None:
    run = cli(
        *("fit", "--optimizer=SGD", "--trainer.logger=CSVLogger", "--trainer.logger.save_dir=logs"),
        *("--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=val"),
        "--trainer.callbacks.mode=min",
    )
    assert any(type(cb) is EarlyStopping for cb in run.trainer.callbacks)
    assert len(list(Path("logs").rglob("config.yaml"))) == 1


def test_any_task_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_tasks", sys.modules[__name__])
    monkeypatch.setattr(Wide, "__module__", "my_tasks")
    run = cli("validate", "--model=my_tasks.Wide", "--model.extra=4", model_class=None)
    assert (type(run.model), run.model.extra, run.model.hparams.width) == (Wide, 4, 32)


class Own(CLI):
    """Adds a link, a callback, a default and a hook."""

    def add_arguments_to_parser(self, parser: Any) -> None:
        parser.link_arguments("model.width", "data.features")
        parser.add_callback(Counts, "counts")
        parser.set_defaults({"counts.start": 3})
        parser.add_optimizer_args(mt.optim.Adam)
        parser.add_lr_scheduler_args(mt.optim.lr_scheduler.ReduceLROnPlateau)

    def before_fit(self) -> None:
        self.model.told = "before"

    def after_fit(self) -> None:
        self.model.told += " and after"


class Counts(Callback):
    """Counts batches."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def on_train_batch_start(self, *args: Any) -> None:
        self.count += 1


def test_a_command_line_of_ones_own() -> None:
    fixed = Counts(100)
    run = Own(
        Net,
        Data,
        args=[
            "fit",
            *QUIET,
            "--model.width=3",
            "--optimizer.lr=0.1",
            "--lr_scheduler_monitor=val",
        ],
        trainer_defaults={"callbacks": [fixed], "limit_train_batches": 2},
        save_config_callback=None,
        seed_everything_default=False,
    )
    assert run.datamodule.hparams.features == 3
    assert [cb.count for cb in run.trainer.callbacks if type(cb) is Counts] == [102, 5]
    assert run.model.told == "before and after"
    assert type(run.trainer.optimizers[0]) is mt.optim.Adam
    assert run.trainer.lr_scheduler_configs[0].monitor == "val"
    assert run.trainer.optimizers[0].param_groups[0]["lr"] == 0.1
    assert not Path("config.yaml").exists()


def test_without_a_run() -> None:
    run = cli("--model.width=3", "--trainer.max_epochs=2", run=False)
    assert (run.subcommand, run.trainer.max_epochs, run.model.hparams.width) == (None, 2, 3)
    given = {"model": {"width": 8}, "trainer": {"max_epochs": 3}}
    run = TrainerCLI(Net, run=False, args=given, auto_configure_optimizers=False)
    assert (run.trainer.max_epochs, run.model.hparams.width, run.datamodule) == (3, 8, None)


def test_functions_make_tasks() -> None:
    def narrow(width: int = 2) -> Net:
        return Net(width)

    assert cli("--model.width=1", model_class=narrow, run=False).model.hparams.width == 1


def test_a_choice_that_nobody_can_use() -> None:
    with pytest.raises(ArgumentError, match=r"schedule moves an optimizer. Got --lr_scheduler"):
        cli("fit", "--lr_scheduler=StepLR", "--lr_scheduler.step_size=1")
    with pytest.raises(ArgumentError, match=r"Regression has its own configure_optimizers"):
        cli("fit", "--optimizer=SGD", model_class=Regression)


def test_the_file_can_be_replaced_and_named() -> None:
    for _ in range(2):
        cli(
            *("fit", "--optimizer=SGD"),
            save_config_kwargs={"config_filename": "run.yaml", "overwrite": True},
        )
    assert [path.name for path in Path().iterdir()] == ["run.yaml"]
    assert SaveConfigCallback.order.name == "MEASURE"
