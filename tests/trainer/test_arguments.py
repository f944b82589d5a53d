"""Arguments of the Trainer: what is accepted, what is refused and with which words."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from toy_tasks import Regression, loader, quiet, weights

import minitorch
from minitorch.errors import ArgumentError
from minitorch.trainer import Trainer
from minitorch.trainer.arguments import REPLACED, Settings

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "max_epochs": ({"max_epochs": 1.5}, r"max_epochs must be an integer ≥ 0 or -1.*Got 1.5"),
    "min_epochs": ({"min_epochs": -1}, r"min_epochs must be an integer ≥ 0. Got -1"),
    "max_steps": ({"max_steps": None}, r"max_steps must be an integer ≥ 0 or -1.*Got None"),
    "bool": ({"max_epochs": True}, r"max_epochs must be an integer"),
    "order": ({"min_epochs": 3, "max_epochs": 2}, r"min_epochs must be ≤ max_epochs. Got 3 > 2"),
    "window": ({"accumulate_grad_batches": 0}, r"accumulate_grad_batches must be an integer ≥ 1"),
    "precision": ({"precision": "8"}, r'precision must be one of "32".*Got \'8\''),
    "half weights": ({"precision": "8-true"}, r'"16-true", "bf16-true". Got \'8-true\'.'),
    "clip": ({"gradient_clip_val": -1.0}, r"gradient_clip_val must be a number > 0. Got -1.0"),
    "algorithm": ({"gradient_clip_algorithm": "l2"}, r'must be "norm" or "value". Got \'l2\''),
    "share": ({"limit_val_batches": 1.5}, r"limit_val_batches must be a share in \[0.0, 1.0\]"),
    "negative": ({"limit_train_batches": -1}, r"limit_train_batches must be a share"),
    "interval": ({"val_check_interval": 0}, r"val_check_interval must be a share"),
    "every": ({"check_val_every_n_epoch": 0}, r"check_val_every_n_epoch must be an integer ≥ 1"),
    "every none": ({"check_val_every_n_epoch": None}, r"must be an integer. Got None. Pass a num"),
    "logs": ({"log_every_n_steps": -1}, r"log_every_n_steps must be an integer ≥ 0"),
    "sanity": ({"num_sanity_val_steps": "all"}, r"num_sanity_val_steps must be an integer"),
    "accelerator": ({"accelerator": "tpu"}, r'accelerator must be "auto", "cpu", "gpu" or "cuda"'),
    "deterministic": ({"deterministic": "yes"}, r'deterministic must be True, False or "warn"'),
    "profiler": ({"profiler": "fast"}, r"profiler must be one of simple, advanced, ops"),
    "dev run": ({"fast_dev_run": -1}, r"fast_dev_run must be True, False or a number"),
    "flag": ({"enable_progress_bar": "no"}, r"enable_progress_bar must be True or False. Got 'no'"),
    "flag none": ({"inference_mode": None}, r"inference_mode must be True or False. Got None"),
    "overfit": ({"overfit_batches": 2.0}, r"overfit_batches must be a share"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused_when_a_run_starts(case: str) -> None:
    options, message = WRONG[case]
    trainer = quiet(**options)
    with pytest.raises(ArgumentError, match=message):
        trainer.fit(Regression(), loader())


UNKNOWN = {
    "max_epoch": r"there is no argument 'max_epoch'. Did you mean max_epochs\?",
    "gradient_clip_value": r"Did you mean gradient_clip_val\?",
    "zzz": r"there is no argument 'zzz'. Known are max_epochs, ",
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_arguments(name: str) -> None:
    with pytest.raises(ArgumentError, match=UNKNOWN[name]):
        Trainer(**{name: 1})


@pytest.mark.parametrize("name", REPLACED)
def test_arguments_of_lightning_without_a_meaning(name: str) -> None:
    neutral, fix = REPLACED[name]
    with pytest.raises(ArgumentError) as caught:
        Trainer(**{name: "ddp"})
    assert fix in str(caught.value)
    for value in neutral:
        Trainer(**{name: value})


def test_logger_must_be_one() -> None:
    with pytest.raises(ArgumentError, match=r"logger must be an object of minitorch.loggers"):
        Trainer(logger="tensorboard")


def test_settings_are_the_arguments() -> None:
    names = [name for name in inspect.signature(Trainer).parameters if name != "unknown"]
    assert names == Settings.names()


def test_every_argument_is_documented() -> None:
    text = Trainer.__doc__ or ""
    assert not [name for name in Settings.names() if name not in text]


def test_contradicting_arguments() -> None:
    class Keeper(Regression):
        def configure_callbacks(self) -> Any:
            from minitorch.callbacks import ModelCheckpoint

            return ModelCheckpoint()

    with pytest.raises(ArgumentError, match=r"enable_checkpointing=False contradicts"):
        quiet(enable_checkpointing=False).fit(Keeper(), loader())


@pytest.mark.parametrize("option", [{"gradient_clip_val": 1.0}, {"accumulate_grad_batches": 2}])
def test_arguments_that_need_automatic_optimization(option: dict[str, Any]) -> None:
    class Manual(Regression):
        automatic_optimization = False

    with pytest.raises(ArgumentError, match=r"works with automatic optimization"):
        quiet(max_epochs=1, **option).fit(Manual(), loader())


DEVICES: dict[str, tuple[dict[str, Any], str]] = {
    "two": ({"devices": 2}, r"devices must be 1 or \[index\]. Got 2. Training runs on one"),
    "list": (
        {"accelerator": "cpu", "devices": [3]},
        r'devices must be 1 with accelerator="cpu". Got \[3\]. A list names a GPU',
    ),
}


@pytest.mark.parametrize("case", DEVICES)
def test_other_devices_are_refused_by_the_constructor(case: str) -> None:
    options, message = DEVICES[case]
    with pytest.raises(ArgumentError, match=message):
        Trainer(**options)


@pytest.mark.parametrize(
    "options",
    [{"logger": True}, {"enable_progress_bar": True}, {"profiler": "simple"}, {"checks": "warn"}],
)
def test_barebones_contradicts_what_it_turns_off(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=rf"barebones=True turns {next(iter(options))} off"):
        Trainer(barebones=True, **options)


def test_barebones_trains_the_same_weights_and_logs_nothing() -> None:
    def run(**options: Any) -> Any:
        minitorch.manual_seed(3)
        task = Regression()
        return task, Trainer(max_epochs=2, **options).fit(task, loader(), loader(8))

    bare, result = run(barebones=True)
    full, _ = run(enable_progress_bar=False)
    assert not result.history
    for name, value in weights(full).items():
        assert (value == weights(bare)[name]).all()
