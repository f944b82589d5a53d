"""Ctrl-C and SIGTERM: the first one ends the run after the current step, the second one at once."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.trainer.trainer import Trainer

_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
_REASONS = {signal.SIGINT: "Ctrl-C was pressed", signal.SIGTERM: "SIGTERM was received"}


def cut_short(trainer: Trainer, stage: str) -> str:
    """What a run that stopped at once has left, for a note at the KeyboardInterrupt."""
    if stage != "fit":
        return f"Trainer.{stage}: stopped at once; nothing was changed."
    if not trainer.fitted or not trainer.position.batches:
        return "Trainer.fit: stopped before the first batch was done."
    return (
        f"Trainer.fit: stopped at once, after {trainer.position.global_step} updates; the module "
        "has their weights. The first Ctrl-C ends a run in order and saves what is to be saved."
    )


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
