"""Ctrl-C and SIGTERM: the first one ends the run after the current step, the second one at once."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
_REASONS = {signal.SIGINT: "Ctrl-C was pressed", signal.SIGTERM: "SIGTERM was received"}


class Interrupt:
    """Replaces handlers of signals until `restore`; does nothing outside the main thread.

    SIGTERM, by which clusters and containers announce a kill, is taken over unless the program has
    a handler of its own for it.

    Attributes:
        requested: One of them came.
        reason: Which one, for `FitResult.reason`.
    """

    def __init__(self) -> None:
        self.requested = False
        self.reason = _REASONS[signal.SIGINT]
        self._previous: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        """Takes over the signals."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._previous[signal.SIGINT] = signal.signal(signal.SIGINT, self._handle)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._previous[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._handle)

    def restore(self) -> None:
        """Puts the previous handlers back."""
        while self._previous:
            signal.signal(*self._previous.popitem())

    def _handle(self, number: int, frame: FrameType | None) -> None:
        kind = signal.Signals(number)
        if self.requested:
            self.restore()
            if kind is signal.SIGTERM:
                raise SystemExit(128 + number)
            raise KeyboardInterrupt
        self.requested, self.reason = True, _REASONS[kind]
        print(
            f"\n{_NAMES[kind]}: finishing this step. A second one stops at once.", file=sys.stderr
        )
