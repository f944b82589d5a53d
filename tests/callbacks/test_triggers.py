"""Triggers: when they come due, how they combine, and that a resumed run goes on exactly."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_tasks import Linear, Scripted, Spy, fit, loader, quiet

import minitorch as mt
from minitorch.callbacks import (
    At,
    Batches,
    Callback,
    EarlyStopping,
    Epochs,
    Hours,
    Minutes,
    ModelCheckpoint,
    Once,
    Order,
    Samples,
    Seconds,
    Steps,
    Trigger,
    When,
    every,
    triggers,
)
from minitorch.errors import ArgumentError, DataError


class Note:
    """A callable that keeps the number of batches done, and whether the epoch was over."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, trainer: Any) -> None:
        position = trainer.position
        self.seen.append("end" if position.epoch_done else position.batches)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": list(self.seen)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = list(state["seen"])


def late(trainer: Any) -> bool:
    return trainer.global_step >= 6


# Four batches of two samples an epoch, two epochs, one update per batch.
DUE: dict[str, tuple[Trigger, list[Any]]] = {
    "updates": (Steps(3), [3, 6]),
    "batches": (Batches(4), [4, 8]),
    "samples": (Samples(5.0), [3, 5, 8]),
    "epochs": (Epochs(1), ["end", "end"]),
    "every second epoch": (Epochs(2), ["end"]),
    "half epochs": (Epochs(0.5), [2, "end", 6, "end"]),
    "more often than batches": (Epochs(0.1), [1, 2, 3, 4, "end", 5, 6, 7, 8, "end"]),
    "either": (Steps(4) | Samples(6), [3, 4, 6, 8]),
    "both": (Steps(2) & Steps(3), [3, 6]),
    "both, one waits": (Steps(5) & Epochs(1), [5]),
    "after": (Steps(2).after(Steps(5)), [6, 8]),
    "after, inclusive": (Steps(2).after(Epochs(1)), [6, 8]),
    "until": (Steps(2).until(Steps(5)), [2, 4]),
    "once": (Once(Steps(3)), [3]),
    "at": (At([2, 7]), [2, 7]),
    "at epochs": (At([0.5, 1], Epochs), [2, "end"]),
    "at whole epochs": (At([2], Epochs), ["end"]),
    "at samples": (At([3], Samples), [2]),
    "when": (When(late), [6, 7, 8, "end"]),
    "nested": ((Steps(2) | Steps(3)) & Samples(8), [4, 8]),
}


def expected(case: str) -> list[Any]:
    return DUE[case][1]


@pytest.mark.parametrize("case", DUE)
def test_when_it_comes_due(case: str) -> None:
    note = Note()
    fit(Linear(), every(DUE[case][0], note), max_epochs=2)
    assert note.seen == expected(case)


class SaveAndDie(Callback):
    """Saves after a number of batches and ends the process."""

    order = Order.PERSIST

    def __init__(self, batches: int, path: Path) -> None:
        self.batches = batches
        self.path = path

    def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
        if trainer.position.batches == self.batches:
            trainer.save_checkpoint(self.path)
            raise ZeroDivisionError


@pytest.mark.parametrize("case", DUE)
def test_resumed_runs_go_on_exactly(case: str, tmp_path: Path) -> None:
    for batch in (1, 4, 5, 7):
        calls = every(DUE[case][0], Note()), SaveAndDie(batch, tmp_path / "x")
        with pytest.raises(ZeroDivisionError):
            fit(Linear(), *calls, max_epochs=2)
        note = Note()
        fit(Linear(), every(DUE[case][0], note), max_epochs=2, ckpt=tmp_path / "x")
        assert note.seen == expected(case), f"after batch {batch}"


def test_updates_are_not_batches() -> None:
    updates, batches = Note(), Note()
    calls = every(Steps(2), updates), every(Batches(2), batches)
    fit(Linear(), *calls, max_epochs=2, accumulate_grad_batches=2)
    assert (updates.seen, batches.seen) == ([4, 8], [2, 4, 6, 8])


def test_one_trigger_serves_several_owners() -> None:
    trigger, notes = Steps(4), (Note(), Note())
    calls = [every(trigger, note) for note in notes]
    assert calls[0].state_key != calls[1].state_key or calls[0].name == calls[1].name
    fit(Linear(), *calls, max_epochs=2)
    assert [note.seen for note in notes] == [[4, 8], [4, 8]]


@pytest.mark.parametrize(("unit", "seconds"), [(Seconds, 1.0), (Minutes, 60.0), (Hours, 3600.0)])
def test_time(unit: Any, seconds: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = [100.0]
    monkeypatch.setattr(triggers.units.time, "monotonic", lambda: now[0])

    class Slow(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            now[0] += 2.0 * seconds
            return super().training_step(batch, batch_idx)

    note = Note()
    fit(Slow(), every(unit(3), note), max_epochs=2)
    assert note.seen == [2, 3, 5, 6, 8]
    calls = every(unit(3), Note()), SaveAndDie(4, tmp_path / "x")
    with pytest.raises(ZeroDivisionError):
        fit(Slow(), *calls, max_epochs=2)
    now[0] += 1000.0 * seconds  # the time between two processes does not count
    again = Note()
    fit(Slow(), every(unit(3), again), max_epochs=2, ckpt=tmp_path / "x")
    assert again.seen == note.seen


def test_functions_take_what_they_need() -> None:
    seen: list[Any] = []
    fit(
        Linear(),
        Epochs(1).call(lambda: seen.append("nothing")),
        Epochs(1).call(lambda trainer: seen.append(trainer.global_step)),
        Epochs(1).call(lambda trainer, module: seen.append(type(module).__name__)),
        Epochs(1).call(lambda *args: seen.append(len(args)), name="all"),
        max_epochs=1,
    )
    assert seen == ["nothing", 4, "Linear", 2]


def test_epoch_metrics_are_final() -> None:
    seen: list[float] = []
    look = every(Epochs(1), lambda trainer: seen.append(trainer.callback_metrics["train/mean"]))

    class Task(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("train/mean", float(batch_idx), on_step=False, on_epoch=True)
            return self.loss(batch)

    fit(Task(), look, max_epochs=1)
    assert [float(value) for value in seen] == [1.5]


def test_whole_epochs_cost_nothing_in_a_batch() -> None:
    assert not every(Epochs(1), print).listens("on_train_batch_end")
    assert every(Epochs(0.5), print).listens("on_train_batch_end")
    assert not every(At([1, 2], Epochs) | Epochs(3), print).listens("on_train_batch_end")


SHOWN = {
    "Steps(100)": Steps(100),
    "Samples(1e+06)": Samples(1e6),
    "Steps(1234567)": Steps(1234567),
    "Epochs(0.1234567)": Epochs(0.1234567),
    "Steps(1) | Minutes(5) | Epochs(0.25)": Steps(1) | Minutes(5) | Epochs(0.25),
    "(Steps(1) | Steps(2)) & Hours(1)": (Steps(1) | Steps(2)) & Hours(1),
    "Once(At([1, 2], Steps))": Once(At([1, 2])),
    "(Steps(1) | Steps(2)).after(Epochs(1))": (Steps(1) | Steps(2)).after(Epochs(1)),
    "Steps(1).until(When(late))": Steps(1).until(When(late)),
    "Seconds(90)": triggers.as_trigger("x", timedelta(seconds=90)),
}


@pytest.mark.parametrize("text", SHOWN)
def test_how_they_are_shown(text: str) -> None:
    assert repr(SHOWN[text]) == text


WRONG: dict[str, tuple[Any, str]] = {
    "steps": (Steps(0), r"Steps: the interval must be an integer ≥ 1. Got Steps\(0\)"),
    "half a step": (Steps(0.5), r"must be an integer ≥ 1. Got Steps\(0.5\)"),  # type: ignore[arg-type]
    "samples": (Samples(-1), r"Samples: the interval must be a number > 0. Got Samples\(-1\)"),
    "inf": (Minutes(float("inf")), r"must be a number > 0. Got Minutes\(inf\)"),
    "flag": (Epochs(True), r"must be a number > 0. Got Epochs\(True\)"),
    "points": (At([]), r"At: points must be a list of numbers > 0. Got \[\]. Write At\(\[100"),
    "when": (When(3), r"When: a function of the trainer is needed. Got 3"),  # type: ignore[arg-type]
    "inside": (Once(Steps(1) | Steps(0)), r"must be an integer ≥ 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_values_are_refused_when_a_fit_starts(case: str) -> None:
    trigger, message = WRONG[case]
    with pytest.raises(ArgumentError, match=message):
        fit(Linear(), every(trigger, print), max_epochs=1)


NO_UNIT = {
    "number": (100, r"carries its unit.*Got 100. Did you mean Steps\(100\), Batches\(100\) or Ep"),
    "class": (Steps, r"Make an object of it, with its interval: Steps\(100\)"),
    "other": ([1], r"Got \[1\]. Pass for example Steps\(100\), Epochs\(1\) or Minutes\(5\)"),
    "text": ("5min", r'must be a span of time above zero: "DD:HH:MM:SS"'),
}


@pytest.mark.parametrize("case", NO_UNIT)
def test_what_has_no_unit_is_refused(case: str) -> None:
    value, message = NO_UNIT[case]
    with pytest.raises(ArgumentError, match=message):
        every(value, print)
    if case == "number":
        with pytest.raises(ArgumentError, match="&: an interval carries its unit"):
            _ = Steps(1) & value


def test_something_to_call_is_needed() -> None:
    with pytest.raises(ArgumentError, match="every: something to call is needed. Got 3"):
        fit(Linear(), every(Steps(1), 3), max_epochs=1)  # type: ignore[arg-type]


def test_parts_of_epochs_need_a_length() -> None:
    class Endless:
        def __iter__(self) -> Any:
            return iter(loader())

    for trigger in (Epochs(0.5), Steps(1) | Epochs(0.5), At([2, 0.5], Epochs)):
        text = r"(Epochs\(0.5\)|At\(\[2, 0.5\], Epochs\)): a part of an epoch needs a training"
        with pytest.raises(DataError, match=text):
            quiet(every(trigger, print), max_epochs=1).fit(Linear(), Endless())
    note = Note()
    quiet(every(Epochs(1), note), max_epochs=2).fit(Linear(), Endless())
    assert note.seen == ["end", "end"]


# Validation.

VALIDATED: dict[str, tuple[Any, list[int]]] = {
    "updates": (Steps(3), [3, 6]),
    "samples": (Samples(6), [3, 6]),
    "epoch": (Epochs(1), [4, 8]),
    "quarter": (Epochs(0.5), [2, 4, 6, 8]),
    "combined": (Steps(3) | Epochs(1), [3, 4, 6, 8]),
    "second epoch": (Epochs(2), [8]),
    "points": (At([1, 5], Batches), [1, 5]),
}


def validated(spy: Any = None) -> Any:
    return Spy("on_validation_end", lambda t: None if t.sanity_checking else t.position.batches)


@pytest.mark.parametrize("case", VALIDATED)
def test_when_validation_runs(case: str, tmp_path: Path) -> None:
    interval, places = VALIDATED[case]
    spy = validated()
    fit(Linear(), spy, max_epochs=2, val_check_interval=interval)
    assert spy.seen[1:] == places
    for batch in (2, 3, 4, 6):
        die = SaveAndDie(batch, tmp_path / "x")
        with pytest.raises(ZeroDivisionError):
            fit(Linear(), die, max_epochs=2, val_check_interval=interval)
        spy = validated()
        fit(Linear(), spy, max_epochs=2, val_check_interval=interval, ckpt=tmp_path / "x")
        assert spy.seen == [place for place in places if place >= batch]


def test_validation_in_updates_with_accumulation() -> None:
    spy = validated()
    options: dict[str, Any] = {"accumulate_grad_batches": 2, "val_check_interval": Steps(1)}
    fit(Linear(), spy, max_epochs=2, **options)
    assert spy.seen[1:] == [2, 4, 6, 8]


def test_validation_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(triggers.units.time, "monotonic", lambda: now[0])

    class Slow(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            now[0] += 40.0
            return super().training_step(batch, batch_idx)

    for interval in (Minutes(1), "00:00:01:00", timedelta(minutes=1), {"minutes": 1}):
        spy = validated()
        fit(Slow(), spy, max_epochs=2, val_check_interval=interval)
        assert spy.seen[1:] == [2, 3, 5, 6, 8]


def test_a_dev_run_validates_whatever_the_interval() -> None:
    for interval in (Steps(100), 50):
        spy = validated()
        fit(Linear(), spy, fast_dev_run=2, val_check_interval=interval)
        assert spy.seen == [2]


def test_another_interval_on_resume_starts_afresh(tmp_path: Path) -> None:
    die = SaveAndDie(3, tmp_path / "x")
    with pytest.raises(ZeroDivisionError):
        fit(Linear(), die, max_epochs=2, val_check_interval=Steps(2))
    spy = validated()
    fit(Linear(), spy, max_epochs=2, val_check_interval=Steps(4), ckpt=tmp_path / "x")
    assert spy.seen == [4, 8]


INTERVAL_ERRORS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "epochs too": (
        {"val_check_interval": Steps(2), "check_val_every_n_epoch": 2},
        ArgumentError,
        r"says all about when to validate. Got Steps\(2\) and check_val_every_n_epoch=2",
    ),
    "value": ({"val_check_interval": Steps(0)}, ArgumentError, r"must be an integer ≥ 1"),
    "kind": ({"val_check_interval": [3]}, ArgumentError, r"val_check_interval: an interval carr"),
}


@pytest.mark.parametrize("case", INTERVAL_ERRORS)
def test_wrong_intervals(case: str) -> None:
    options, kind, message = INTERVAL_ERRORS[case]
    with pytest.raises(kind, match=message):
        fit(Linear(), max_epochs=1, **options)


def test_same_numbers_with_and_without_triggers() -> None:
    results = []
    for callbacks in ([], [every(Steps(2) | Samples(3), Note())]):
        mt.manual_seed(0)
        task = Linear()
        fit(task, *callbacks, max_epochs=2)
        results.append(task.linear.weight.detach().numpy().tolist())
    assert results[0] == results[1]


# Early stopping.

LOOKS: dict[str, tuple[Any, int]] = {
    # with the score 1.0 in each of 4 batches an epoch's validation; patience of two values
    "each value": (None, 3),
    "every second epoch": (Epochs(2), 6),
    "updates": (Steps(6), 5),
    "samples": (Samples(8), 3),
}


@pytest.mark.parametrize("case", LOOKS)
def test_early_stopping_looks_when_it_is_due(case: str, tmp_path: Path) -> None:
    every_, epochs = LOOKS[case]

    def stop() -> EarlyStopping:
        return EarlyStopping("val/score", mode="min", patience=2, every=every_)

    assert fit(Scripted([1.0]), stop(), max_epochs=9).epochs == epochs
    for batch in (3, 8, 9):
        die = SaveAndDie(batch, tmp_path / "x")
        with pytest.raises(ZeroDivisionError):
            fit(Scripted([1.0]), stop(), die, max_epochs=9)
        resumed = fit(Scripted([1.0]), stop(), max_epochs=9, ckpt=tmp_path / "x")
        assert resumed.epochs == epochs


def test_early_stopping_refuses_a_bare_number() -> None:
    with pytest.raises(ArgumentError, match="EarlyStopping: every: an interval carries its unit"):
        EarlyStopping("val/score", mode="min", every=100)


# Checkpoints.

SAVED: dict[str, tuple[Any, list[int]]] = {
    "updates": (Steps(3), [3, 6]),
    "samples": (Samples(6), [3, 6]),
    "epochs": (Epochs(1), [4, 8]),
    "combined": (Steps(3) | Epochs(1), [3, 4, 6, 8]),
    "late": (Steps(1).after(Epochs(1.5)), [6, 7, 8]),
}


@pytest.mark.parametrize("case", SAVED)
def test_checkpoints_are_written_when_it_is_due(case: str, tmp_path: Path) -> None:
    trigger, steps = SAVED[case]

    def keep(folder: Path) -> ModelCheckpoint:
        return ModelCheckpoint(folder, "{step}", every=trigger, save_top_k=-1, save_last=False)

    def found(folder: Path) -> list[int]:
        return sorted(int(path.stem.partition("=")[2]) for path in folder.glob("*.ckpt"))

    fit(Linear(), keep(tmp_path / "whole"), max_epochs=2)
    assert found(tmp_path / "whole") == steps
    calls = keep(tmp_path / "cut"), SaveAndDie(5, tmp_path / "x")
    with pytest.raises(ZeroDivisionError):
        fit(Linear(), *calls, max_epochs=2)
    fit(Linear(), keep(tmp_path / "cut"), max_epochs=2, ckpt=tmp_path / "x")
    assert found(tmp_path / "cut") == steps


def test_one_argument_sets_the_rhythm(tmp_path: Path) -> None:
    both = ModelCheckpoint(tmp_path, every=Steps(1), every_n_train_steps=2)
    with pytest.raises(ArgumentError, match="sets the rhythm. Got every and every_n_train_steps"):
        fit(Linear(), both, max_epochs=1)
    with pytest.raises(ArgumentError, match="ModelCheckpoint: every: an interval carries its un"):
        ModelCheckpoint(tmp_path, every=2)
