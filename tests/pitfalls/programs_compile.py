"""Captured steps: what cannot be replayed says so."""

from __future__ import annotations

from typing import Any

from harness import Classifier, fit, good, warns

import minitorch as mt


class ReadsAValue(Classifier):
    """Logs the number instead of the tensor."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        self.log("train/loss", loss.item())
        return loss


class Grows(Classifier):
    """Counts its steps by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.seen += 1
        return super().training_step(batch, batch_idx)


class Scheduled(Classifier):
    """Logs, sees a smaller last batch, and has a float learning rate on a schedule."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = super().training_step(batch, batch_idx)
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [mt.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


@warns("compile-breaks-recompiles", r"item reads the value of a tensor, at .*loss\.item\(\)")
def _() -> None:
    fit(ReadsAValue(), compile=True)


@warns("compile-breaks-recompiles", r"the step changes .*seen, at .*self\.seen \+= 1", "own count")
def _() -> None:
    fit(Grows(), compile=True)


@good("compile-breaks-recompiles")
def _() -> None:
    fit(Scheduled(), compile=True)
