"""The progress bar in a terminal, a file and a notebook; time is a counter."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import sys
import termios
import tty
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_tasks import Fails, Linear, fit, loader, quiet

from minitorch.callbacks import (
    Callback,
    EarlyStopping,
    Timer,
    TQDMProgressBar,
    progress_bar,
    progress_display,
    timer,
)
from minitorch.callbacks.progress_text import metrics_text
from minitorch.errors import ArgumentError

COLUMNS = 100


class Clock:
    """Time that passes by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now

    monotonic = perf_counter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress_bar, "time", found)
    monkeypatch.setattr(timer, "time", found)
    return found


class Screen:
    """A terminal: what was written to it, and the lines that a person sees."""

    def __init__(self) -> None:
        self._master, slave = os.openpty()
        size = struct.pack("HHHH", 24, COLUMNS, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        tty.setraw(slave)
        os.set_blocking(self._master, False)
        self.stream = open(slave, "w", encoding="utf-8", newline="")
        self.written = ""

    def read(self) -> str:
        """What was written since the last call."""
        self.stream.flush()
        parts = []
        while True:
            try:
                parts.append(os.read(self._master, 65536))
            except BlockingIOError:
                break
        text = b"".join(parts).decode()
        self.written += text
        return text

    @property
    def lines(self) -> list[str]:
        """Everything on the screen, empty lines at the end left out."""
        self.read()
        rows, row, column = [""], 0, 0
        for char in self.written:
            if char == "\r":
                column = 0
            elif char == "\n":
                row, column = row + 1, 0
                rows += [""] * (row + 1 - len(rows))
            else:
                line = rows[row].ljust(column)
                rows[row] = line[:column] + char + line[column + 1 :]
                column += 1
        rows = [line.rstrip() for line in rows]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def column_is_zero(self) -> bool:
        """Whether the cursor is at the start of an empty line."""
        self.read()
        return self.written.endswith(("\n", "")) and re.split("[\r\n]", self.written)[-1] == ""

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    found = Screen()
    monkeypatch.setenv("TERM", "xterm")
    # pytest puts its own streams into sys again when the test begins
    both = SimpleNamespace(stderr=found.stream, stdout=found.stream, modules=sys.modules)
    monkeypatch.setattr(progress_display, "sys", both)
    yield found
    found.close()


class Task(Linear):
    """One second for a training batch, two for a validation batch."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = [clock]

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.clock[0].now += 1.0
        self.log("loss", 0.5 + batch_idx, prog_bar=True)
        return self.loss(batch)

    def validation_step(self, batch: Any, batch_idx: int) -> Any:
        self.clock[0].now += 2.0
        self.log("val/acc", 0.75, prog_bar=True)

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        self.clock[0].now += 1.0
        return super().predict_step(batch, batch_idx)

    test_step = validation_step


class Watch(Callback):
    """Looks at the screen after an event.

    Args:
        screen: Where to look.
        events: Names of events.
    """

    order = EarlyStopping.order

    def __init__(self, screen: Screen, *events: str) -> None:
        self.seen: list[str] = []
        for event in events:
            setattr(self, event, lambda *args: self.seen.append("\n".join(screen.lines)))


def run(clock: Clock, *callbacks: Callback, **options: Any) -> Any:
    bar = options.pop("bar", None) or TQDMProgressBar()
    trainer = quiet(bar, *callbacks, enable_progress_bar=True, **options)
    return trainer.fit(Task(clock), loader(), loader(2))


TERMINAL = [
    "Sanity check  50%|██████████          | 1/2",
    "Sanity check 100%|████████████████████| 2/2",
    "Epoch 0/1  25%|█████               | 1/4, ? it/s, loss=0.5000",
    "Epoch 0/1  50%|██████████          | 2/4, 1 it/s, ETA 6.0s, loss=1.500",
    "Epoch 0/1  75%|███████████████     | 3/4, 1 it/s, ETA 5.0s, loss=2.500",
    "Epoch 0/1 100%|████████████████████| 4/4, 1 it/s, ETA 4.0s, loss=3.500",
    "Epoch 0/1 100%|████████████████████| 4/4, validation 1/2, 1 it/s, ETA 6.7s, loss=3.500",
    "Epoch 0/1 100%|████████████████████| 4/4, validation 2/2, 1 it/s, ETA 9.3s, loss=3.500",
    "Epoch 1/1  25%|█████               | 1/4, 1 it/s, ETA 6.0s, loss=0.5000, val/acc=0.7500",
    "Epoch 1/1  50%|██████████          | 2/4, 1 it/s, ETA 3.6s, loss=1.500, val/acc=0.7500",
    "Epoch 1/1  75%|███████████████     | 3/4, 1 it/s, ETA 1.7s, loss=2.500, val/acc=0.7500",
    "Epoch 1/1 100%|████████████████████| 4/4, 1 it/s, loss=3.500, val/acc=0.7500",
]


def test_golden_terminal(clock: Clock, screen: Screen) -> None:
    watch = Watch(screen, "on_train_batch_end", "on_validation_batch_end")
    run(clock, watch, max_epochs=2)
    assert watch.seen[: len(TERMINAL)] == TERMINAL
    assert screen.lines == [
        "Epoch 1/1 100%|████████████████████| 4/4, 1 it/s, 0:16, loss=3.500, val/acc=0.7500"
    ]
    assert screen.column_is_zero


def test_a_line_for_each_epoch_on_request(clock: Clock, screen: Screen) -> None:
    run(clock, bar=TQDMProgressBar(leave=True), max_epochs=3)
    lines = screen.lines
    assert [line[:9] for line in lines] == ["Epoch 0/2", "Epoch 1/2", "Epoch 2/2"]
    assert all("100%" in line and "4/4" in line for line in lines)


def test_long_lines_are_cut_not_wrapped(clock: Clock, screen: Screen) -> None:
    class Long(Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("a name that is far too long for a line of a terminal" * 3, 1.0, prog_bar=True)
            return super().training_step(batch, batch_idx)

    quiet(enable_progress_bar=True, max_epochs=2).fit(Long(clock), loader())
    [line] = screen.lines
    assert len(line) <= COLUMNS
    assert line.startswith("Epoch 1/1 100%")


LOG_FILE = """\
Epoch 0/2: 4 batches, 8.0s in all, 1 it/s in training, ETA 0:19, val/acc=0.7500, loss=3.500
Epoch 1/2: 4 batches, 8.0s in all, 1 it/s in training, ETA 8.6s, val/acc=0.7500, loss=3.500
Epoch 2/2: 4 batches, 8.0s in all, 1 it/s in training, val/acc=0.7500, loss=3.500
"""


@pytest.mark.parametrize(("rows", "columns", "width"), [(0, 0, 80), (0, 90, 90), (24, 0, 80)])
def test_terminal_that_tells_no_size(
    rows: int, columns: int, width: int, clock: Clock, screen: Screen
) -> None:
    size = struct.pack("HHHH", rows, columns, 0, 0)
    fcntl.ioctl(screen.stream, termios.TIOCSWINSZ, size)
    watch = Watch(screen, "on_train_batch_end")
    run(clock, watch, max_epochs=2)
    assert all("Epoch" in line and len(line) < width for line in watch.seen)
    assert watch.seen[-1].startswith("Epoch 1/1 100%|████████| 4/4, 1 it/s, loss=3.500, val/acc")


def test_golden_file(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    run(clock, max_epochs=3)
    out, err = capsys.readouterr()
    assert (out, sorted_metrics(err)) == ("", sorted_metrics(LOG_FILE))


def sorted_metrics(text: str) -> list[list[str]]:
    """Lines as sets of their parts: the order of metrics is the order of logging."""
    return [sorted(line.split(", ")) for line in text.splitlines()]


def test_epoch_that_is_cut_has_its_line(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    run(clock, max_steps=6, num_sanity_val_steps=0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("Epoch 1: 2 of 4 batches, 2.0s in all, 1 it/s in training")
    assert len(lines) == 2
    assert ["val/acc" in line for line in lines] == [True, False]  # it is of other weights


def test_last_line_of_a_cut_epoch_has_no_earlier_validation(clock: Clock, screen: Screen) -> None:
    watch = Watch(screen, "on_train_batch_end")
    run(clock, watch, max_steps=6, num_sanity_val_steps=0)
    assert "val/acc" in watch.seen[-1]
    assert screen.lines[-1].startswith("Epoch 1")
    assert "val/acc" not in screen.lines[-1]
    run(clock, max_steps=1, num_sanity_val_steps=0)
    assert "it/s" not in screen.lines[-1]  # one batch has no speed


def test_epoch_values_in_lines_and_both_in_the_bar() -> None:
    values = {"a_step": 1.0, "a_epoch": 2.0, "a": 2.0, "b": 3.0}
    assert metrics_text(values) == "a_step=1.000, a_epoch=2.000, b=3.000"
    assert metrics_text(values, of_epoch=True) == "a=2.000, b=3.000"


def test_evaluations(clock: Clock, screen: Screen) -> None:
    trainer = quiet(enable_progress_bar=True)
    task = Task(clock)
    trainer.validate(task, loader(2), verbose=False)
    trainer.test(task, loader(2), verbose=False)
    trainer.predict(task, loader(4))
    assert screen.lines == [
        "Validation 100%|████████████████████| 2/2, 2 s/it, 4.0s",
        "Test 100%|████████████████████| 2/2, 2 s/it, 4.0s",
        "Prediction 100%|████████████████████| 4/4, 1 it/s, 4.0s",
    ]
    assert screen.column_is_zero


def test_evaluations_in_a_file_leave_only_the_table(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet(enable_progress_bar=True).test(Task(clock), loader(2))
    out, err = capsys.readouterr()
    assert (out, err) == ("test\n  val/acc  0.75\n", "")


def test_unknown_lengths(clock: Clock, screen: Screen) -> None:
    class Endless:
        def __iter__(self) -> Any:
            while True:
                yield from loader()

    watch = Watch(screen, "on_train_batch_end")
    trainer = quiet(watch, enable_progress_bar=True, max_steps=3, max_epochs=-1)
    trainer.fit(Task(clock), Endless())
    assert [re.sub(" +", " ", line) for line in watch.seen] == [
        "Epoch 0 0%| | 1/?, ? it/s, loss=0.5000",
        "Epoch 0 0%| | 2/?, 1 it/s, ETA 1.0s, loss=1.500",
        "Epoch 0 0%| | 3/?, 1 it/s, loss=2.500",
    ]


def test_limit_of_time_bounds_the_estimate(clock: Clock, screen: Screen) -> None:
    watch = Watch(screen, "on_train_batch_end")
    run(clock, watch, Timer("00:00:00:05"), max_epochs=100, num_sanity_val_steps=0)
    assert [re.search("ETA [^,]*", line)[0] for line in watch.seen[:4]] == [  # type: ignore[index]
        "ETA 4.0s",
        "ETA 3.0s",
        "ETA 2.0s",
        "ETA 1.0s",
    ]


# Cost.


class Fast(Task):
    """A hundredth of a second for a batch."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.clock[0].now += 0.01
        return self.loss(batch)


def test_redraws_are_limited_by_time_and_read_nothing_between(
    clock: Clock, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []
    from minitorch.callbacks.core import MetricLog

    read = MetricLog.bar
    monkeypatch.setattr(MetricLog, "bar", lambda self, **o: reads.append(1) or read(self, **o))
    quiet(enable_progress_bar=True, max_epochs=1).fit(Fast(clock), loader(95))
    # a redraw each tenth of a second for 0.95 s, and one at the end
    assert 10 <= len(reads) <= 12
    assert screen.read().count("\r") <= 2 * 12


def test_refresh_rate_thins_out(clock: Clock, screen: Screen) -> None:
    watch = Watch(screen, "on_train_batch_end")
    run(clock, watch, bar=TQDMProgressBar(2), max_epochs=1, num_sanity_val_steps=0)
    places = [re.search(r"\d/4", line) for line in watch.seen]
    assert [found and found[0] for found in places] == ["1/4", "1/4", "3/4", "3/4"]


@pytest.mark.parametrize("terminal", [True, False])
def test_off(terminal: bool, clock: Clock, request: pytest.FixtureRequest) -> None:
    screen = request.getfixturevalue("screen" if terminal else "capsys")
    bar = TQDMProgressBar(0)
    run(clock, bar=bar, max_epochs=1)
    assert not (screen.read() if terminal else screen.readouterr().err)
    assert not any(bar.listens(event) for event in ("on_train_batch_end", "on_train_epoch_end"))


def test_no_event_per_batch_in_a_file(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    bar = TQDMProgressBar()
    run(clock, bar=bar, max_epochs=1)
    assert not bar.listens("on_train_batch_end")  # after the first one, where the clock starts
    assert not bar.listens("on_validation_batch_end")


def test_tqdm_starts_no_thread(clock: Clock, screen: Screen) -> None:
    import threading

    before = threading.active_count()
    during = []

    class Look(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            during.append(threading.active_count())

    run(clock, Look(), max_epochs=1)
    assert during == [before]


# Order on the screen.


@pytest.mark.parametrize("event", ["on_train_batch_end", "on_validation_batch_end"])
def test_exception_leaves_the_line_and_the_cursor_below(
    event: str, clock: Clock, screen: Screen
) -> None:
    with pytest.raises(ZeroDivisionError):
        run(clock, Fails(event, 2, ZeroDivisionError()), max_epochs=2)
    print("Traceback", file=screen.stream)
    assert len(screen.lines) == 2
    assert screen.lines[0].startswith("Epoch 0/1")
    assert screen.lines[1] == "Traceback"


def test_printing_goes_above_the_line(clock: Clock, screen: Screen) -> None:
    class Talks(Task):
        def on_validation_epoch_end(self) -> None:
            self.print("epoch", self.current_epoch, sep=" = ", end="!\n", flush=True)

    quiet(enable_progress_bar=True, max_epochs=2).fit(Talks(clock), loader(), loader(2))
    lines = screen.lines
    assert lines[:-1] == ["epoch = 0!", "epoch = 0!", "epoch = 1!"]
    assert lines[-1].startswith("Epoch 1/1 100%")


def test_printing_into_a_file_of_its_own(clock: Clock, screen: Screen, tmp_path: Any) -> None:
    with open(tmp_path / "notes.txt", "w") as notes:

        class Talks(Task):
            def on_train_epoch_end(self) -> None:
                self.print("note", file=notes)

        quiet(enable_progress_bar=True, max_epochs=1).fit(Talks(clock), loader())
    assert (tmp_path / "notes.txt").read_text() == "note\n"
    assert len(screen.lines) == 1


def test_object_is_used_again(clock: Clock, screen: Screen) -> None:
    bar = TQDMProgressBar()
    for _ in range(2):
        run(clock, bar=bar, max_epochs=1)
    assert len(screen.lines) == 2
    assert screen.lines[0] == screen.lines[1]


# Where it is shown.


def test_dumb_terminal_gets_lines(
    clock: Clock, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    run(clock, max_epochs=2)
    assert [line[:10] for line in screen.lines] == ["Epoch 0/1:", "Epoch 1/1:"]


def notebook(monkeypatch: pytest.MonkeyPatch, *, kernel: bool) -> None:
    """Makes it look as if a notebook's kernel (or IPython in a terminal) runs this."""
    shell = SimpleNamespace(config={"IPKernelApp": {}} if kernel else {})
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]


def test_notebook_without_widgets_has_one_line_on_stdout(
    clock: Clock, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook(monkeypatch, kernel=True)
    run(clock, max_epochs=2)
    out, err = capsys.readouterr()
    assert (out.count("\n"), err) == (1, "")
    assert "validation 1/2" in out
    assert out.rstrip("\n").split("\r")[-1].startswith("Epoch 1/1 100%")


def test_notebook_with_widgets(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook(monkeypatch, kernel=True)
    made: list[Any] = []

    class Widget:
        def __init__(self, **options: Any) -> None:
            self.options, self.total, self.shown = options, options["total"], []
            made.append(self)

        def reset(self, total: Any) -> None:
            self.shown.append(f"reset to {total}")

        def refresh(self) -> None:
            self.shown.append(f"{self.desc} {self.n}/{self.total}")  # type: ignore[attr-defined]

        def close(self) -> None:
            self.shown.append("closed")

    monkeypatch.setattr(progress_display.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "tqdm.notebook", SimpleNamespace(tqdm=Widget))  # type: ignore[arg-type]
    run(clock, max_epochs=1)
    [widget] = made
    assert "{bar}" in widget.options["bar_format"]
    assert widget.shown == [
        "Sanity check 2/2",
        "reset to 4",
        *[f"Epoch 0/0 {n}/4" for n in (1, 2, 3, 4, 4, 4, 4)],
        "closed",
    ]


def test_ipython_in_a_terminal_is_a_terminal(
    clock: Clock, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook(monkeypatch, kernel=False)
    assert TQDMProgressBar().choose_display().live
    assert not progress_display._in_notebook()


# Text.


@pytest.mark.parametrize("rate", [-1, 0.5, True])
def test_wrong_rate(rate: Any, clock: Clock) -> None:
    message = re.escape(f"refresh_rate must be an integer ≥ 0. Got {rate!r}. 0 shows nothing.")
    with pytest.raises(ArgumentError, match=message):
        fit(Linear(), TQDMProgressBar(rate), max_epochs=1)
