"""Ctrl-C: the first one ends the run after the current step, the second one at once."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any


class Interrupt:
    """Replaces the handler of SIGINT while it is entered; does nothing outside the main thread.

    Attributes:
        requested: Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.requested = False
        self._previous: Any = None
        self._installed = False

    def install(self) -> None:
        """Takes over SIGINT."""
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
            self._installed = True

    def restore(self) -> None:
        """Puts the previous handler back."""
        if self._installed:
            signal.signal(signal.SIGINT, self._previous)
            self._installed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            self.restore()
            raise KeyboardInterrupt
        self.requested = True
        print("\nCtrl-C: finishing this step. Press it again to stop at once.", file=sys.stderr)
