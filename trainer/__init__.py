"""Trainer and TaskModule: the training loop and the module that it trains."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from minitorch.trainer import lightning_paths

if TYPE_CHECKING:
    # Names of Lightning, for programs written for it: `import minitorch.trainer as pl`.
    from minitorch import callbacks as callbacks
    from minitorch import loggers as loggers
    from minitorch.callbacks import Callback as Callback
    from minitorch.callbacks.cancel import CancelEpoch as CancelEpoch
    from minitorch.callbacks.cancel import CancelFit as CancelFit
    from minitorch.callbacks.cancel import CancelStep as CancelStep
    from minitorch.trainer.advanced_profiler import AdvancedProfiler as AdvancedProfiler
    from minitorch.trainer.combined_loader import CombinedLoader as CombinedLoader
    from minitorch.trainer.data_module import DataModule as DataModule
    from minitorch.trainer.data_module import DataModule as LightningDataModule
    from minitorch.trainer.ops_profiler import OpsProfiler as OpsProfiler
    from minitorch.trainer.phase import freeze as freeze
    from minitorch.trainer.phase import unfreeze as unfreeze
    from minitorch.trainer.profiler import Profiler as Profiler
    from minitorch.trainer.profiler import SimpleProfiler as SimpleProfiler
    from minitorch.trainer.result import Checkpoint as Checkpoint
    from minitorch.trainer.result import FitResult as FitResult
    from minitorch.trainer.seeding import isolate_rng as isolate_rng
    from minitorch.trainer.seeding import seed_everything as seed_everything
    from minitorch.trainer.task import TaskModule as LightningModule
    from minitorch.trainer.task import TaskModule as TaskModule
    from minitorch.trainer.trainer import Trainer as Trainer
    from minitorch.trainer.tuner import Tuner as Tuner

lightning_paths.install()
_HOME = {
    "CancelEpoch": "minitorch.callbacks.cancel",
    "CancelFit": "minitorch.callbacks.cancel",
    "CancelStep": "minitorch.callbacks.cancel",
    "AdvancedProfiler": "advanced_profiler",
    "Checkpoint": "result",
    "CombinedLoader": "combined_loader",
    "DataModule": "data_module",
    "FitResult": "result",
    "OpsProfiler": "ops_profiler",
    "Profiler": "profiler",
    "SimpleProfiler": "profiler",
    "TaskModule": "task",
    "Trainer": "trainer",
    "Tuner": "tuner",
    "freeze": "phase",
    "isolate_rng": "seeding",
    "seed_everything": "seeding",
    "unfreeze": "phase",
}

_LIGHTNING = {"LightningDataModule": "DataModule", "LightningModule": "TaskModule"}
_PACKAGES = {
    "callbacks": "minitorch.callbacks",
    "loggers": "minitorch.loggers",
    "profilers": "minitorch.trainer.profilers",
}

__all__ = ["Callback", *_HOME, *_LIGHTNING]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(_PACKAGES[name])
    if name == "Callback":
        from minitorch.callbacks import Callback

        return Callback
    if name in _LIGHTNING:
        return __getattr__(_LIGHTNING[name])
    if name not in _HOME:
        from minitorch.trainer.lightning_hints import absent

        raise AttributeError(absent(__name__, name, __all__))
    home = _HOME[name]
    home = home if home.startswith("minitorch.") else f"{__name__}.{home}"
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
