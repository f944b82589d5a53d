"""Trainer and TaskModule: the training loop and the module that it trains."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.callbacks.cancel import CancelEpoch as CancelEpoch
    from minitorch.callbacks.cancel import CancelFit as CancelFit
    from minitorch.callbacks.cancel import CancelStep as CancelStep
    from minitorch.trainer.combined_loader import CombinedLoader as CombinedLoader
    from minitorch.trainer.data_module import DataModule as DataModule
    from minitorch.trainer.phase import freeze as freeze
    from minitorch.trainer.phase import unfreeze as unfreeze
    from minitorch.trainer.result import Checkpoint as Checkpoint
    from minitorch.trainer.result import FitResult as FitResult
    from minitorch.trainer.task import TaskModule as TaskModule
    from minitorch.trainer.trainer import Trainer as Trainer

_HOME = {
    "CancelEpoch": "minitorch.callbacks.cancel",
    "CancelFit": "minitorch.callbacks.cancel",
    "CancelStep": "minitorch.callbacks.cancel",
    "Checkpoint": "result",
    "CombinedLoader": "combined_loader",
    "DataModule": "data_module",
    "FitResult": "result",
    "TaskModule": "task",
    "Trainer": "trainer",
    "freeze": "phase",
    "unfreeze": "phase",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOME[name]
    home = home if home.startswith("minitorch.") else f"{__name__}.{home}"
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
