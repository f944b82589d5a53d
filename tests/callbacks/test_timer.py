"""Timer and spans of time; the clock is a counter, nothing waits."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from scripted_tasks import Fails, Linear, Spy, fit, loader, quiet

from minitorch.callbacks import EarlyStopping, Timer, timer
from minitorch.callbacks.duration import clock, parse_duration
from minitorch.errors import ArgumentError

SPANS = [
    ("00:00:00:01", 1),
    ("01:02:03:04", 86400 + 2 * 3600 + 3 * 60 + 4),
    ("400:00:00:00", 400 * 86400),
    (timedelta(minutes=90), 5400),
    ({"hours": 8}, 8 * 3600),
    ({"minutes": 1.5, "seconds": 1}, 91),
]


@pytest.mark.parametrize(("value", "seconds"), SPANS)
def test_spans_that_are_read(value: Any, seconds: float) -> None:
    assert parse_duration("Timer: duration", value).total_seconds() == seconds


@pytest.mark.parametrize(
    "value", ["01:00", "1 hour", "00:00:00:00", timedelta(0), {"hour": 1}, {}, 60, {"days": "1"}]
)
def test_spans_that_are_refused(value: Any) -> None:
    message = re.escape(f'a dict such as {{"minutes": 90}}. Got {value!r}. Half an hour is')
    with pytest.raises(ArgumentError, match=r"Timer: duration must be a span.*" + message):
        parse_duration("Timer: duration", value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0s"),
        (0, "0.0s"),
        (0.04, "0.0s"),
        (7.34, "7.3s"),
        (9.96, "0:10"),
        (59.6, "1:00"),
        (3599.4, "59:59"),
        (3600, "1:00:00"),
        (86399.7, "1d 00:00:00"),
        (200000, "2d 07:33:20"),
        (float("inf"), "?"),
        (float("nan"), "?"),
    ],
)
def test_spans_for_people(seconds: float, text: str) -> None:
    assert clock(seconds) == text


class Clock:
    """Time that passes one second at each training step and nowhere else."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(timer, "time", found)
    return found


class Ticking(Linear):
    def __init__(self, fake: Clock) -> None:
        super().__init__()
        self.clock = [fake]

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.clock[0].now += 1
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.clock[0].now += 0.5 * (not self.trainer.sanity_checking)

    test_step = validation_step


# arguments, options of the Trainer → updates; one second each, half a second for a validation
LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "no limit": ({}, {}, 12),
    "five seconds": ({"duration": "00:00:00:05"}, {}, 5),
    "validation counts": ({"duration": {"seconds": 6.5}}, {}, 6),
    "just reached": ({"duration": timedelta(seconds=4)}, {}, 4),
    "epochs": ({"duration": "00:00:00:05", "interval": "epoch"}, {}, 8),
    "min_epochs first": ({"duration": "00:00:00:01"}, {"min_epochs": 2}, 8),
    "min_steps first": ({"duration": "00:00:00:01"}, {"min_steps": 3}, 3),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limit(case: str, fake: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, options, updates = LIMITS[case]
    limit = Timer(**arguments)
    result = fit(Ticking(fake), limit, max_epochs=3, **options)
    assert result.global_step == updates
    assert result.status == "completed"
    printed = capsys.readouterr().out
    if arguments:
        assert re.fullmatch(r"Timer: the time of \d\.\ds is up", result.reason)
        assert printed == f"{result.reason}\n"
    else:
        assert (result.reason, printed) == ("max_epochs=3 reached", "")
        assert limit.time_remaining() is None


def test_max_time_of_the_trainer(fake: Clock) -> None:
    assert fit(Ticking(fake), max_time="00:00:00:02", max_epochs=3).global_step == 2


def test_times_of_the_stages(fake: Clock) -> None:
    measure = Timer()
    trainer = quiet(measure, max_epochs=2)
    task = Ticking(fake)
    trainer.fit(task, loader(), loader(1))
    trainer.test(task, loader(1), verbose=False)
    assert measure.time_elapsed() == measure.time_elapsed("train") == 9.0
    assert measure.time_elapsed("validate") == 1.0
    assert measure.time_elapsed("test") == 0.5


def test_remaining(fake: Clock) -> None:
    limit = Timer("00:00:00:03", verbose=False)
    look = Spy("on_train_batch_end", lambda trainer: limit.time_remaining())
    fit(Ticking(fake), limit, look, max_epochs=3)
    assert look.seen == [2.0, 1.0, 0.0]


def test_time_before_a_resume_counts(fake: Clock, tmp_path: Any) -> None:
    path = tmp_path / "middle.ckpt"
    save = Spy("on_train_batch_end", lambda t: t.global_step == 3 and t.save_checkpoint(path))
    limit = Timer("00:00:00:06", verbose=False)
    with pytest.raises(ZeroDivisionError):
        fit(Ticking(fake), limit, save, Fails("on_train_batch_end", 4, ZeroDivisionError()))
    assert limit.time_elapsed() == 4.0
    fake.now += 1000
    again = Timer("00:00:00:06", verbose=False)
    result = fit(Ticking(fake), again, ckpt=path, max_epochs=3)
    assert result.global_step == 6
    assert again.time_elapsed() == 6.5


def test_time_that_is_up_before_the_first_batch(fake: Clock, tmp_path: Any) -> None:
    path = tmp_path / "middle.ckpt"
    save = Spy("on_train_batch_end", lambda t: t.global_step == 3 and t.save_checkpoint(path))
    fit(Ticking(fake), Timer(), save, max_epochs=1)
    result = fit(Ticking(fake), Timer("00:00:00:02"), ckpt=path, max_epochs=3)
    assert (result.global_step, result.status) == (3, "completed")


def test_failure_is_stronger_than_the_limit(fake: Clock) -> None:
    class Nan(Ticking):
        def validation_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("val/loss", float("nan"))

    stop = EarlyStopping("val/loss", mode="min")
    result = fit(Nan(fake), stop, Timer("00:00:00:04"), max_epochs=3)
    assert result.status == "failed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"interval": "batch"}, 'Timer: interval must be "step" or "epoch". Got \'batch\'.'),
        ({"duration": "1h"}, "Timer: duration must be a span of time above zero"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        fit(Linear(), Timer(**arguments), max_epochs=1)


def test_unknown_stage() -> None:
    message = r'stage must be "train", "validate" or "test". Got \'fit\''
    with pytest.raises(ArgumentError, match=message):
        Timer().time_elapsed("fit")
