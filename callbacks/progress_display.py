"""Where progress is shown: one line that changes, in a terminal or notebook, or lines in a file."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Mapping
from typing import Any, Literal, TextIO

from minitorch.callbacks.progress_text import joined

_LINE = "{{desc}} {{percentage:3.0f}}%|{{bar{cells}}}| {{n_fmt}}/{{total_fmt}}{{postfix}}"
_WIDGET, _WIDE, _NARROW = (_LINE.format(cells=cells) for cells in ("", ":20", ":8"))


class Display:
    """Where the line of a progress bar is shown.

    Attributes:
        live: Whether it has a line that changes.
    """

    live = False

    def show(self, label: str, done: int, total: int | None, tail: Mapping[str, str]) -> None:
        """Redraws the line that changes.

        Args:
            label: Text at its beginning.
            done, total: Progress of the bar; the total may be unknown.
            tail: Texts at its end: "note", "speed", "time" and "metrics".
        """

    def line(self, text: str) -> None:
        """Writes one line about an epoch, where there is none that changes."""

    def print(self, *values: Any, **options: Any) -> None:
        """Prints what is no part of the line."""
        print(*values, **options)

    def finish(self) -> None:
        """Leaves the line as it is and goes on below it."""


class LineDisplay(Display):
    """Writes whole lines: for log files and pipes."""

    def line(self, text: str) -> None:
        """Writes one line to stderr."""
        print(text, file=sys.stderr, flush=True)


class LiveDisplay(Display):
    """Keeps one line up to date, by tqdm.

    Args:
        notebook: Use a widget, where ipywidgets is installed, in place of a terminal's line.
    """

    live = True

    def __init__(self, *, notebook: bool = False) -> None:
        self._notebook = notebook
        self._widget = notebook and importlib.util.find_spec("ipywidgets") is not None
        self._bar: Any = None

    def show(self, label: str, done: int, total: int | None, tail: Mapping[str, str]) -> None:
        """Redraws the line."""
        bar, text = self._bar, joined(tail.values())
        if bar is None:
            self._bar = self._open(label, done, total, text)
            return
        if bar.total != total:
            if self._widget:
                bar.reset(total)
            bar.total = total
        bar.desc, bar.n, bar.postfix = label, done, text
        bar.ncols, bar.bar_format = self._shape()
        bar.refresh()

    def print(self, *values: Any, **options: Any) -> None:
        """Prints above the line."""
        if self._bar is None:
            print(*values, **options)
            return
        file = options.pop("file", None) or sys.stdout
        flush = options.pop("flush", False)
        text = io.StringIO()
        print(*values, file=text, **options)
        self._bar.write(text.getvalue(), file=file, end="")
        if flush:
            file.flush()

    def finish(self) -> None:
        """Leaves the line as it is and goes on below it."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()

    def _open(self, label: str, done: int, total: int | None, tail: str) -> Any:
        kind = _bar_class(widget=self._widget)
        columns, bar_format = self._shape()
        return kind(
            desc=label,
            initial=done,
            total=total,
            postfix=tail,
            file=sys.stdout if self._notebook else sys.stderr,
            bar_format=bar_format,
            ncols=columns,
            nrows=24,  # tqdm shows nothing where a terminal tells that it has no rows
            leave=True,
        )

    def _shape(self) -> tuple[int | None, str]:
        """Width of the line, one less than the terminal's so that nothing wraps, and its form."""
        if self._notebook:
            return (None, _WIDGET) if self._widget else (119, _WIDE)
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        columns = columns or 80
        return columns - 1, _WIDE if columns >= 100 else _NARROW


def place() -> Literal["notebook", "terminal", "file"]:
    """What shows the line: a line that changes needs a terminal or notebook."""
    if _in_notebook():
        return "notebook"
    return "terminal" if _is_terminal(sys.stderr) else "file"


def _is_terminal(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    current = None if shell is None else shell.get_ipython()
    return current is not None and "IPKernelApp" in current.config


def _bar_class(*, widget: bool) -> Any:
    if widget:
        from tqdm.notebook import tqdm
    else:
        from tqdm import tqdm
    # tqdm's monitor thread would redraw bars that are not updated by their own counter
    return type("ProgressLine", (tqdm,), {"monitor_interval": 0})
