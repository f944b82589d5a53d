"""Callbacks: the core ones that every Trainer runs and those that users add."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback as Callback
from minitorch.callbacks.callback import Order as Order
from minitorch.lazy import missing

if TYPE_CHECKING:
    from minitorch.callbacks.activation_statistics import (
        ActivationStatistics as ActivationStatistics,
    )
    from minitorch.callbacks.backup_and_restore import BackupAndRestore as BackupAndRestore
    from minitorch.callbacks.batch_size_finder import BatchSizeFinder as BatchSizeFinder
    from minitorch.callbacks.cancel import CancelEpoch as CancelEpoch
    from minitorch.callbacks.cancel import CancelFit as CancelFit
    from minitorch.callbacks.cancel import CancelStep as CancelStep
    from minitorch.callbacks.device_stats_monitor import DeviceStatsMonitor as DeviceStatsMonitor
    from minitorch.callbacks.discovery import describe_plugins as describe_plugins
    from minitorch.callbacks.discovery import discover_callbacks as discover_callbacks
    from minitorch.callbacks.early_stopping import EarlyStopping as EarlyStopping
    from minitorch.callbacks.finetuning import BackboneFinetuning as BackboneFinetuning
    from minitorch.callbacks.finetuning import BaseFinetuning as BaseFinetuning
    from minitorch.callbacks.gradient_accumulation_scheduler import (
        GradientAccumulationScheduler as GradientAccumulationScheduler,
    )
    from minitorch.callbacks.gradient_noise_scale import GradientNoiseScale as GradientNoiseScale
    from minitorch.callbacks.gradient_statistics import GradientStatistics as GradientStatistics
    from minitorch.callbacks.history import History as History
    from minitorch.callbacks.html_report import HTMLReport as HTMLReport
    from minitorch.callbacks.lambda_callback import LambdaCallback as LambdaCallback
    from minitorch.callbacks.learning_rate_finder import LearningRateFinder as LearningRateFinder
    from minitorch.callbacks.learning_rate_monitor import LearningRateMonitor as LearningRateMonitor
    from minitorch.callbacks.learning_rate_scheduler import (
        LearningRateScheduler as LearningRateScheduler,
    )
    from minitorch.callbacks.model_checkpoint import ModelCheckpoint as ModelCheckpoint
    from minitorch.callbacks.model_summary import ModelSummary as ModelSummary
    from minitorch.callbacks.model_summary import RichModelSummary as RichModelSummary
    from minitorch.callbacks.model_summary import summarize as summarize
    from minitorch.callbacks.on_exception_checkpoint import (
        OnExceptionCheckpoint as OnExceptionCheckpoint,
    )
    from minitorch.callbacks.prediction_writer import BasePredictionWriter as BasePredictionWriter
    from minitorch.callbacks.prediction_writer import PredictionWriter as PredictionWriter
    from minitorch.callbacks.progress_bar import ProgressBar as ProgressBar
    from minitorch.callbacks.pruning import ModelPruning as ModelPruning
    from minitorch.callbacks.reduce_lr_on_plateau import ReduceLROnPlateau as ReduceLROnPlateau
    from minitorch.callbacks.replay_bundle import ReplayBundle as ReplayBundle
    from minitorch.callbacks.rich_progress_bar import RichProgressBar as RichProgressBar
    from minitorch.callbacks.rich_progress_bar import RichProgressBarTheme as RichProgressBarTheme
    from minitorch.callbacks.rollback import Rollback as Rollback
    from minitorch.callbacks.skip_non_finite import SkipNonFinite as SkipNonFinite
    from minitorch.callbacks.spike_detection import SpikeDetection as SpikeDetection
    from minitorch.callbacks.stochastic_weight_averaging import (
        StochasticWeightAveraging as StochasticWeightAveraging,
    )
    from minitorch.callbacks.throughput_monitor import ThroughputMonitor as ThroughputMonitor
    from minitorch.callbacks.timer import Timer as Timer
    from minitorch.callbacks.tqdm_progress_bar import TQDMProgressBar as TQDMProgressBar
    from minitorch.callbacks.triggered import TriggeredCall as TriggeredCall
    from minitorch.callbacks.triggered import every as every
    from minitorch.callbacks.triggers import At as At
    from minitorch.callbacks.triggers import Batches as Batches
    from minitorch.callbacks.triggers import Epochs as Epochs
    from minitorch.callbacks.triggers import Hours as Hours
    from minitorch.callbacks.triggers import Minutes as Minutes
    from minitorch.callbacks.triggers import Once as Once
    from minitorch.callbacks.triggers import Samples as Samples
    from minitorch.callbacks.triggers import Seconds as Seconds
    from minitorch.callbacks.triggers import Steps as Steps
    from minitorch.callbacks.triggers import Trigger as Trigger
    from minitorch.callbacks.triggers import When as When
    from minitorch.callbacks.validation_trigger import ValidationTrigger as ValidationTrigger
    from minitorch.callbacks.weight_averaging import EMAWeightAveraging as EMAWeightAveraging
    from minitorch.callbacks.weight_averaging import WeightAveraging as WeightAveraging

_HOME = {
    "PredictionWriter": "prediction_writer",
    "BasePredictionWriter": "prediction_writer",
    "WeightAveraging": "weight_averaging",
    "StochasticWeightAveraging": "stochastic_weight_averaging",
    "ReduceLROnPlateau": "reduce_lr_on_plateau",
    "ModelPruning": "pruning",
    "LearningRateScheduler": "learning_rate_scheduler",
    "History": "history",
    "GradientAccumulationScheduler": "gradient_accumulation_scheduler",
    "EMAWeightAveraging": "weight_averaging",
    "BaseFinetuning": "finetuning",
    "BackboneFinetuning": "finetuning",
    "BackupAndRestore": "backup_and_restore",
    "BatchSizeFinder": "batch_size_finder",
    "ThroughputMonitor": "throughput_monitor",
    "RichModelSummary": "model_summary",
    "GradientStatistics": "gradient_statistics",
    "DeviceStatsMonitor": "device_stats_monitor",
    "ActivationStatistics": "activation_statistics",
    "EarlyStopping": "early_stopping",
    "HTMLReport": "html_report",
    "LambdaCallback": "lambda_callback",
    "LearningRateFinder": "learning_rate_finder",
    "LearningRateMonitor": "learning_rate_monitor",
    "ModelCheckpoint": "model_checkpoint",
    "ModelSummary": "model_summary",
    "OnExceptionCheckpoint": "on_exception_checkpoint",
    "ReplayBundle": "replay_bundle",
    "Rollback": "rollback",
    "SpikeDetection": "spike_detection",
    "ProgressBar": "progress_bar",
    "RichProgressBar": "rich_progress_bar",
    "RichProgressBarTheme": "rich_progress_bar",
    "TQDMProgressBar": "tqdm_progress_bar",
    "Timer": "timer",
    "CancelEpoch": "cancel",
    "CancelFit": "cancel",
    "CancelStep": "cancel",
    "GradientNoiseScale": "gradient_noise_scale",
    "SkipNonFinite": "skip_non_finite",
    "describe_plugins": "discovery",
    "discover_callbacks": "discovery",
    "TriggeredCall": "triggered",
    "ValidationTrigger": "validation_trigger",
    "every": "triggered",
    "summarize": "model_summary",
    **dict.fromkeys(
        "At Batches Epochs Hours Minutes Once Samples Seconds Steps Trigger When".split(),
        "triggers",
    ),
}

__all__ = ["Callback", "Order", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(_absent(name))
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


_ELSEWHERE = {
    "Checkpoint": "Derive from Callback with order = Order.PERSIST, or from ModelCheckpoint.",
    "LightningCLI": "It is in minitorch.trainer.cli.",
    "TrainerCLI": "It is in minitorch.trainer.cli.",
    "SaveConfigCallback": "It is in minitorch.trainer.cli.",
    "Tuner": "It is in minitorch.trainer.",
}


def _absent(name: str) -> str:
    """What an AttributeError says; names of Lightning are told where they are here."""
    hint = _ELSEWHERE.get(name, "")
    for end, place in (("Logger", "loggers"), ("Profiler", "trainer")):
        hint = hint or (f"Look in minitorch.{place}." if name.endswith(end) else "")
    if hint:
        return f"module {__name__!r} has no attribute {name!r}. {hint}"
    return missing(__name__, name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
