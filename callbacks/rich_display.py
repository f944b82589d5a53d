"""The progress line by rich; imported only where rich is used."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from minitorch.callbacks.progress_display import Display

if TYPE_CHECKING:
    from minitorch.callbacks.rich_progress_bar import RichProgressBarTheme

_CELLS = 20
_NAMES = ("note", "speed", "time", "metrics")


class RichDisplay(Display):
    """Keeps one line up to date in a terminal or notebook.

    Args:
        theme: Styles.
        console_kwargs: Arguments of rich's Console.
    """

    live = True

    def __init__(self, theme: RichProgressBarTheme, console_kwargs: Mapping[str, Any]) -> None:
        self._theme = theme
        self._console_kwargs = {"file": sys.stderr, **console_kwargs}
        self._progress: Progress | None = None
        self._task: Any = None

    def show(self, label: str, done: int, total: int | None, tail: Mapping[str, str]) -> None:
        """Redraws the line."""
        fields: dict[str, Any] = {name: tail.get(name, "") for name in _NAMES}
        fields["count"] = f"{done}/{'?' if total is None else total}"
        if self._progress is None:
            self._progress = self._open()
            self._task = self._progress.add_task(label, total=total, **fields)
        self._progress.update(self._task, description=label, completed=done, total=total, **fields)
        self._progress.refresh()

    def print(self, *values: Any, **options: Any) -> None:
        """Prints above the line."""
        if self._progress is None or options.get("file") not in (None, sys.stdout, sys.stderr):
            print(*values, **options)
            return
        options.pop("file", None)
        text = io.StringIO()
        print(*values, file=text, **options)
        console = self._progress.console
        console.print(text.getvalue(), end="", markup=False, highlight=False, soft_wrap=True)

    def finish(self) -> None:
        """Leaves the line as it is and goes on below it."""
        progress, self._progress = self._progress, None
        if progress is not None:
            progress.stop()

    def _open(self) -> Progress:
        theme = self._theme
        styles = {
            "note": theme.time,
            "speed": theme.processing_speed,
            "time": theme.time,
            "metrics": theme.metrics,
        }
        progress = Progress(
            TextColumn("{task.description}", style=theme.description, markup=False),
            BarColumn(
                _CELLS,
                complete_style=theme.progress_bar,
                finished_style=theme.progress_bar_finished,
                pulse_style=theme.progress_bar_pulse,
            ),
            TextColumn("{task.fields[count]}", style=theme.batch_progress, markup=False),
            *(
                TextColumn(
                    f"{{task.fields[{name}]}}",
                    style=style or "none",
                    markup=False,
                    table_column=Column(no_wrap=True, overflow="ellipsis"),
                )
                for name, style in styles.items()
            ),
            console=Console(**self._console_kwargs),
            auto_refresh=False,
            # A pipe behind stdout keeps what the program prints.
            redirect_stdout=sys.stdout.isatty(),
            redirect_stderr=True,
        )
        progress.start()
        return progress
