"""RichProgressBar: the progress line with colours, by rich."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minitorch.callbacks.extras import needed
from minitorch.callbacks.progress_bar import ProgressBar
from minitorch.callbacks.progress_display import Display, LineDisplay, place
from minitorch.callbacks.progress_text import metrics_text


@dataclass(frozen=True)
class RichProgressBarTheme:
    """Styles of the line, in rich's words ("bold", "#6206E0", "green on black", "").

    Attributes:
        description: Epoch or stage.
        progress_bar, progress_bar_finished, progress_bar_pulse: The bar: while it grows, when it
            is full, and where no total is known.
        batch_progress: `210/500`.
        time, processing_speed: Time left, and speed.
        metrics: The metrics.
        metrics_text_delimiter: Between two metrics.
        metrics_format: Format of a value, such as ".3f"; "" for four significant digits.
    """

    description: str = "bold"
    progress_bar: str = "green"
    progress_bar_finished: str = "green"
    progress_bar_pulse: str = "green"
    batch_progress: str = "bold"
    time: str = "cyan"
    processing_speed: str = "dim"
    metrics: str = ""
    metrics_text_delimiter: str = ", "
    metrics_format: str = ""


class RichProgressBar(ProgressBar):
    """The progress line in colours; `pip install "minitorch-trainer[rich]"`.

        Epoch 2/9 ━━━━━━━━╸━━━━━━━━━━━ 210/500 17.3 it/s ETA 1:30 train/loss=0.5213

    What the program prints appears above the line. `ProgressBar` explains what it says; without
    a terminal there is one plain line for each epoch.

    Args:
        refresh_rate: Redraw at most after so many batches; 0 shows nothing.
        leave: Keep a line for each epoch.
        theme: Styles.
        console_kwargs: Arguments of `rich.console.Console`.

    Raises:
        ModuleNotFoundError: rich is not installed; when a run starts.
    """

    def __init__(
        self,
        refresh_rate: int = 1,
        leave: bool = False,
        theme: RichProgressBarTheme | None = None,
        console_kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(refresh_rate, leave=leave)
        self.theme = theme or RichProgressBarTheme()
        self.console_kwargs = console_kwargs

    def choose_display(self) -> Display:
        """rich in a terminal or notebook, lines elsewhere."""
        with needed("RichProgressBar", "rich"):
            from minitorch.callbacks.rich_display import RichDisplay
        if place() == "file":
            return LineDisplay()
        return RichDisplay(self.theme, self.console_kwargs or {})

    def metrics_text(self, values: Mapping[str, float], *, of_epoch: bool = False) -> str:
        """The metrics at the end of the line."""
        theme = self.theme
        return metrics_text(
            values,
            of_epoch=of_epoch,
            delimiter=theme.metrics_text_delimiter,
            form=theme.metrics_format,
        )
