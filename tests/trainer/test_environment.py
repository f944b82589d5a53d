"""Arguments of the Trainer from the environment."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from toy_tasks import Regression, loader

from minitorch.errors import ArgumentError
from minitorch.trainer import Trainer

TAKEN: dict[str, tuple[str, Any]] = {
    "MAX_EPOCHS": ("3", 3),
    "PRECISION": ("bf16-mixed", "bf16-mixed"),
    "LIMIT_TRAIN_BATCHES": ("0.5", 0.5),
    "ENABLE_PROGRESS_BAR": ("False", False),
    "DEVICES": ("[0]", [0]),
    "DEFAULT_ROOT_DIR": ("/somewhere/else", "/somewhere/else"),
    "default_root_dir": ("2024", "2024"),
    "LOGGER": ("false", False),
    "FAST_DEV_RUN": ("TRUE", True),
    "MAX_STEPS": (" 3 ", 3),
    "max_time": ("(" * 300, "(" * 300),
}


@pytest.mark.parametrize("name", TAKEN)
def test_variables_stand_for_arguments(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, value = TAKEN[name]
    monkeypatch.setenv(f"PL_TRAINER_{name}", text)
    assert getattr(Trainer().settings, name.lower()) == value
    shown = f"Trainer: {name.lower()}={value!r} from the environment (PL_TRAINER_...)\n"
    assert capsys.readouterr().out == shown


def test_an_empty_variable_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PL_TRAINER_MAX_EPOCHS", "")
    assert Trainer(enable_progress_bar=False).settings.max_epochs is None
    assert capsys.readouterr().out == ""


def test_what_is_passed_holds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PL_TRAINER_MAX_EPOCHS", "3")
    assert Trainer(max_epochs=None).settings.max_epochs is None
    assert capsys.readouterr().out == ""


def test_values_are_checked_like_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PL_TRAINER_MAX_STEPS", "many")
    with pytest.raises(ArgumentError, match="max_steps must be an integer .* Got 'many'"):
        Trainer(enable_progress_bar=False).fit(Regression(), loader())


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("PL_TRAINER_MAX_EPOCH", "no argument 'max_epoch'. Did you mean PL_TRAINER_MAX_EPOCHS"),
        ("PL_TRAINER_QUUX", "no argument 'quux'. Unset it"),
    ],
)
def test_variables_of_no_argument(
    variable: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "3")
    with pytest.raises(ArgumentError, match=message):
        Trainer()


def test_the_constructor_still_shows_its_arguments() -> None:
    assert inspect.signature(Trainer).parameters["max_epochs"].default is None
    with pytest.raises(TypeError, match=r"Trainer.__init__\(\) takes 1 positional"):
        Trainer(3)  # type: ignore[misc]
