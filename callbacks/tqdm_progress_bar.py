"""TQDMProgressBar: one line that tells where a run stands and how long it still takes."""

from __future__ import annotations

from minitorch.callbacks.progress_bar import ProgressBar
from minitorch.callbacks.progress_display import Display, LineDisplay, LiveDisplay, place


class TQDMProgressBar(ProgressBar):
    """Shows progress in one line: epoch, batch, speed, time left for the whole run, metrics.

        Epoch 2/9  42%|████████            | 210/500, 17.3 it/s, ETA 1:30, train/loss=0.5213

    It is the default; `ProgressBar` explains what it says, in terminals, notebooks and log files.

    Args:
        refresh_rate: Redraw at most after so many batches; 0 shows nothing.
        leave: Keep a line for each epoch.
    """

    def choose_display(self) -> Display:
        """tqdm in a terminal or notebook, lines elsewhere."""
        where = place()
        return LineDisplay() if where == "file" else LiveDisplay(notebook=where == "notebook")
