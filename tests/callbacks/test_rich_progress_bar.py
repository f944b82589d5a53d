"""The coloured line: in a terminal that only remembers, in a real one (tmux), and in a file."""

from __future__ import annotations

import builtins
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_tasks import Fails, Linear, loader, quiet

from minitorch.callbacks import (
    Callback,
    ProgressBar,
    RichProgressBar,
    RichProgressBarTheme,
    TQDMProgressBar,
    progress_display,
)
from minitorch.errors import ArgumentError

pytest.importorskip("rich")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    found = Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    both = SimpleNamespace(stderr=found, stdout=found, modules=sys.modules)
    monkeypatch.setattr(progress_display, "sys", both)
    return found


def bar(terminal: Terminal, **options: Any) -> RichProgressBar:
    return RichProgressBar(console_kwargs={"file": terminal, "width": 120}, **options)


class Task(Linear):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.log("loss", 0.5 + batch_idx, prog_bar=True)
        return self.loss(batch)


def lines(text: str) -> list[str]:
    """What stood in the line, one after the other, without control characters."""
    parts = re.split(r"\r|\n", text)
    return [re.sub(" +", " ", found).strip() for x in parts if (found := CONTROL.sub("", x))]


def test_in_a_terminal(terminal: Terminal) -> None:
    quiet(bar(terminal), max_epochs=2).fit(Task(), loader(), loader(2))
    shown = lines(terminal.getvalue())
    assert shown[-1].startswith("Epoch 1/1 ━━━━━━━━━━━━━━━━━━━━ 4/4")
    assert "loss=3.500" in shown[-1]
    assert any("Sanity check" in line for line in shown)
    assert "\x1b[" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[?25h"), "the cursor is there again"


def test_theme(terminal: Terminal) -> None:
    theme = RichProgressBarTheme(metrics_format=".1f", metrics_text_delimiter=" | ", metrics="red")

    class Two(Task):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("more", 2.0, prog_bar=True)
            return super().training_step(batch, batch_idx)

    quiet(bar(terminal, theme=theme), max_epochs=1).fit(Two(), loader())
    assert "more=2.0 | loss=3.5" in lines(terminal.getvalue())[-1]
    assert "\x1b[31m" in terminal.getvalue()


def test_names_in_brackets_are_no_markup(terminal: Terminal) -> None:
    class Odd(Linear):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.log("[red]a[/x]", 1.0, prog_bar=True)
            self.trainer.print("[bold]kept[/y]")
            return self.loss(batch)

    quiet(bar(terminal), max_epochs=1).fit(Odd(), loader())
    text = CONTROL.sub("", terminal.getvalue())
    assert "[red]a[/x]=1.000" in text
    assert "[bold]kept[/y]" in text


def test_after_an_exception_the_cursor_is_back(terminal: Terminal) -> None:
    error = Fails("on_train_batch_end", 3, RuntimeError("enough"))
    with pytest.raises(RuntimeError, match="enough"):
        quiet(bar(terminal), error, max_epochs=1).fit(Task(), loader())
    assert terminal.getvalue().endswith("\x1b[?25h")


def test_a_file_has_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    quiet(RichProgressBar(), max_epochs=2).fit(Task(), loader(), loader(2))
    out, err = capsys.readouterr()
    assert out == ""
    assert CONTROL.sub("", err) == err
    assert [line[:9] for line in err.splitlines()] == ["Epoch 0/1", "Epoch 1/1"]


def test_one_bar_is_enough(terminal: Terminal) -> None:
    trainer = quiet(bar(terminal), enable_progress_bar=True, max_epochs=1)
    trainer.fit(Task(), loader())
    assert [type(cb) for cb in trainer.callbacks if isinstance(cb, ProgressBar)] == [
        RichProgressBar
    ]


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_rich(name: str, *args: Any, **options: Any) -> Any:
        if name.split(".")[0] == "rich":
            raise ModuleNotFoundError("No module named 'rich'", name="rich")
        return real(name, *args, **options)

    monkeypatch.delitem(sys.modules, "minitorch.callbacks.rich_display", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_rich)
    with pytest.raises(ModuleNotFoundError, match=r"RichProgressBar needs rich.*trainer\[rich\]"):
        quiet(RichProgressBar()).fit(Task(), loader())


def test_wrong_rate_and_base_class() -> None:
    with pytest.raises(ArgumentError, match="RichProgressBar: refresh_rate must be"):
        quiet(RichProgressBar(-1)).fit(Task(), loader())
    with pytest.raises(NotImplementedError, match=r"ProgressBar must override choose_display\(\)"):
        quiet(ProgressBar()).fit(Task(), loader())


PROGRAM = """
import sys
sys.path.append({tests!r})
from scripted_tasks import Linear, loader
from minitorch.callbacks import RichProgressBar, TQDMProgressBar
from minitorch.trainer import Trainer

class Task(Linear):
    def training_step(self, batch, batch_idx):
        self.log("loss", 0.5 + batch_idx, prog_bar=True)
        return self.loss(batch)

    def on_train_epoch_end(self):
        self.trainer.print("epoch", self.current_epoch, "is over")

Trainer(max_epochs=2, callbacks=[{bar}()]).fit(Task(), loader(), loader(2))
print("and the program goes on")
"""


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")
@pytest.mark.parametrize("kind", [RichProgressBar, TQDMProgressBar])
def test_in_tmux(kind: type[Callback], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    tests = str(Path(__file__).parent)
    program.write_text(PROGRAM.format(tests=tests, bar=kind.__name__))
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", "/dev/null"]
    command = f"{sys.executable} {program}; {' '.join(tmux)} wait-for -S over; sleep 60"
    run = [*tmux, "-u", "new-session", "-d", "-x", "100", "-y", "24", command]
    subprocess.run(run, check=True, timeout=30)
    try:
        subprocess.run([*tmux, "wait-for", "over"], check=True, timeout=50)
        seen = subprocess.run(
            [*tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True, timeout=30
        ).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, timeout=30)
    shown = [re.sub(" +", " ", line).strip() for line in seen.splitlines() if line.strip()]
    assert shown[:2] == ["epoch 0 is over", "epoch 1 is over"]
    bar_line = shown[2]
    assert bar_line.startswith("Epoch 1/1")
    assert "4/4" in bar_line
    assert "loss=3.500" in bar_line
    assert shown[3:] == ["and the program goes on"]
