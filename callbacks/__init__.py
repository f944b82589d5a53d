"""Callbacks: the core ones that every Trainer runs and those that users add."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback as Callback
from minitorch.callbacks.callback import Order as Order

if TYPE_CHECKING:
    from minitorch.callbacks.cancel import CancelEpoch as CancelEpoch
    from minitorch.callbacks.cancel import CancelFit as CancelFit
    from minitorch.callbacks.cancel import CancelStep as CancelStep
    from minitorch.callbacks.discovery import discover_callbacks as discover_callbacks
    from minitorch.callbacks.early_stopping import EarlyStopping as EarlyStopping
    from minitorch.callbacks.gradient_noise_scale import GradientNoiseScale as GradientNoiseScale
    from minitorch.callbacks.lambda_callback import LambdaCallback as LambdaCallback
    from minitorch.callbacks.learning_rate_monitor import LearningRateMonitor as LearningRateMonitor
    from minitorch.callbacks.model_checkpoint import ModelCheckpoint as ModelCheckpoint
    from minitorch.callbacks.model_summary import ModelSummary as ModelSummary
    from minitorch.callbacks.model_summary import summarize as summarize
    from minitorch.callbacks.skip_non_finite import SkipNonFinite as SkipNonFinite
    from minitorch.callbacks.timer import Timer as Timer
    from minitorch.callbacks.tqdm_progress_bar import TQDMProgressBar as TQDMProgressBar

_HOME = {
    "EarlyStopping": "early_stopping",
    "LambdaCallback": "lambda_callback",
    "LearningRateMonitor": "learning_rate_monitor",
    "ModelCheckpoint": "model_checkpoint",
    "ModelSummary": "model_summary",
    "TQDMProgressBar": "tqdm_progress_bar",
    "Timer": "timer",
    "CancelEpoch": "cancel",
    "CancelFit": "cancel",
    "CancelStep": "cancel",
    "GradientNoiseScale": "gradient_noise_scale",
    "SkipNonFinite": "skip_non_finite",
    "discover_callbacks": "discovery",
    "summarize": "model_summary",
}

__all__ = ["Callback", "Order", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
