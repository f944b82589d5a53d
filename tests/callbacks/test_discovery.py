"""Plug-ins: found, shown, switched off, and broken ones named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scripted_tasks import Linear, fit, loader, quiet

from minitorch.callbacks import Callback, describe_plugins, discover_callbacks

CODE = """
from minitorch.callbacks import Callback

class Meter(Callback):
    started = 0
    def on_train_start(self, trainer, module):
        Meter.started += 1

def several():
    return [Meter(), Callback()]

def nothing():
    return []

def wrong():
    return 3

def fails():
    raise ZeroDivisionError("no luck")

value = 7
"""


@pytest.fixture
def plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Installs a package that offers entry points, given as lines `name = module:object`."""

    def install(*lines: str) -> None:
        info = tmp_path / "fake_meter-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-meter\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text("\n".join(["[minitorch.callbacks]", *lines]))
        (tmp_path / "fake_meter.py").write_text(CODE)

    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    sys.modules.pop("fake_meter", None)


def kinds(callbacks: Any) -> list[str]:
    return [type(callback).__name__ for callback in callbacks]


@pytest.mark.parametrize(
    ("target", "expected"),
    [("Meter", ["Meter"]), ("several", ["Meter", "Callback"]), ("nothing", [])],
)
def test_what_an_entry_point_may_be(plug_in: Any, target: str, expected: list[str]) -> None:
    plug_in(f"energy = fake_meter:{target}")
    [found] = discover_callbacks()
    assert kinds(found.callbacks) == expected
    assert str(found) == (
        f"{', '.join(expected) or 'none'} from energy (fake_meter:{target}) of fake-meter 1.2"
    )


def test_order_is_by_name(plug_in: Any) -> None:
    plug_in("b = fake_meter:Meter", "a = fake_meter:nothing")
    assert [found.source[0] for found in discover_callbacks()] == ["a", "b"]


def test_without_plug_ins_there_is_nothing() -> None:
    assert discover_callbacks() == []


BROKEN = {
    "missing module": ("x = no_such_module:f", "ModuleNotFoundError: No module named"),
    "missing name": ("x = fake_meter:no_such_name", "AttributeError: module 'fake_meter' has no"),
    "raises": ("x = fake_meter:fails", "ZeroDivisionError: no luck"),
    "gives something else": ("x = fake_meter:wrong", "TypeError: it must give objects of subcla"),
    "no function": ("x = fake_meter:value", "TypeError: 'int' object is not callable"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plug_in_is_named_and_left_out(plug_in: Any, case: str) -> None:
    line, error = BROKEN[case]
    plug_in(line, "y = fake_meter:Meter")
    source = line.replace("x = ", "")
    message = rf"callback plug-in x \({source}\) of fake-meter 1.2 is left out: {error}"
    with pytest.warns(UserWarning, match=message) as caught:
        result = fit(Linear(), max_epochs=1)
    assert "set MINITORCH_CALLBACK_PLUGINS=0 to use no plug-ins" in str(caught[0].message)
    assert len(caught) == 1
    assert result.status == "completed"
    assert sys.modules["fake_meter"].Meter.started == 1


def test_trainer_takes_part_and_tells(plug_in: Any, capsys: pytest.CaptureFixture[str]) -> None:
    plug_in("energy = fake_meter:Meter")
    trainer = quiet(max_epochs=1)
    task = Linear()
    trainer.fit(task, loader())
    assert capsys.readouterr().out == (
        "Trainer: callbacks Meter from energy (fake_meter:Meter) of fake-meter 1.2\n"
    )
    trainer.validate(task, loader(), verbose=False)
    assert capsys.readouterr().out == ""
    assert kinds(trainer.callbacks).count("Meter") == 1
    trainer.print_order()
    assert re.search(r"on_train_start .*Meter \(MEASURE\)", capsys.readouterr().out)


def test_callback_passed_by_hand_comes_first(
    plug_in: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    plug_in("energy = fake_meter:Meter")
    [found] = discover_callbacks()
    meter = found.callbacks[0]
    trainer = quiet(meter, max_epochs=1)
    trainer.fit(Linear(), loader())
    assert [cb for cb in trainer.callbacks if type(cb) is type(meter)] == [meter]
    assert capsys.readouterr().out.endswith("of fake-meter 1.2, already there\n")


@pytest.mark.parametrize("value", ["0", "false", "No", " off "])
def test_switched_off(plug_in: Any, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in("x = fake_meter:fails")
    monkeypatch.setenv("MINITORCH_CALLBACK_PLUGINS", value)
    assert discover_callbacks() == []
    fit(Linear(), max_epochs=1)


def test_plug_in_may_replace_a_core_callback(plug_in: Any) -> None:
    plug_in("x = fake_core:Log")
    folder = Path(sys.path[0])
    (folder / "fake_core.py").write_text(
        "from minitorch.callbacks.core import MetricLog\nclass Log(MetricLog): pass\n"
    )
    trainer = quiet(max_epochs=1)
    trainer.fit(Linear(), loader())
    assert type(trainer.metric_log).__name__ == "Log"
    sys.modules.pop("fake_core")


def test_class_of_the_fixture_is_a_callback(plug_in: Any) -> None:
    plug_in("x = fake_meter:Meter")
    assert isinstance(discover_callbacks()[0].callbacks[0], Callback)


def test_names_choose(plug_in: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in("a = fake_meter:Meter", "b = fake_meter:several", "c = fake_meter:fails")
    monkeypatch.setenv("MINITORCH_CALLBACK_PLUGINS", "b, other")
    assert [found.source[0] for found in discover_callbacks()] == ["b"]
    monkeypatch.setenv("MINITORCH_CALLBACK_PLUGINS", "a")
    assert describe_plugins().splitlines() == [
        "Meter from a (fake_meter:Meter) of fake-meter 1.2",
        "b (fake_meter:several) of fake-meter 1.2: not used, MINITORCH_CALLBACK_PLUGINS=a",
        "c (fake_meter:fails) of fake-meter 1.2: not used, MINITORCH_CALLBACK_PLUGINS=a",
    ]


def test_nothing_installed_is_said() -> None:
    assert describe_plugins().startswith("No installed package offers callbacks under")


PROGRAM = """
import minitorch as mt
from minitorch.trainer import TaskModule, Trainer

class Task(TaskModule):
    def __init__(self):
        super().__init__()
        self.linear = mt.nn.Linear(1, 1)
    def training_step(self, batch, batch_idx):
        return self.linear(batch).square().mean()
    def configure_optimizers(self):
        return mt.optim.SGD(self.parameters(), lr=0.1)

Trainer(max_epochs=1, enable_progress_bar=False).fit(Task(), [mt.ones(2, 1)])
import fake_meter
print("started", fake_meter.Meter.started)
"""


def test_an_installed_package_takes_part_in_another_process(plug_in: Any, tmp_path: Path) -> None:
    plug_in("energy = fake_meter:Meter", "broken = fake_meter:fails")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "ignore"}

    def run(*arguments: str) -> list[str]:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert run("-m", "minitorch.callbacks") == [
        "broken (fake_meter:fails) of fake-meter 1.2: broken, ZeroDivisionError: no luck",
        "Meter from energy (fake_meter:Meter) of fake-meter 1.2",
    ]
    assert run("-c", PROGRAM) == [
        "Trainer: callbacks Meter from energy (fake_meter:Meter) of fake-meter 1.2",
        "started 1",
    ]
