"""Trainer and TaskModule: the training loop and the module that it trains."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minitorch.trainer.combined_loader import CombinedLoader as CombinedLoader
    from minitorch.trainer.data_module import DataModule as DataModule
    from minitorch.trainer.phase import freeze as freeze
    from minitorch.trainer.phase import unfreeze as unfreeze
    from minitorch.trainer.result import Checkpoint as Checkpoint
    from minitorch.trainer.result import FitResult as FitResult
    from minitorch.trainer.task import TaskModule as TaskModule
    from minitorch.trainer.trainer import Trainer as Trainer

_HOME = {
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
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
