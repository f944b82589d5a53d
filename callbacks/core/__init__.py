"""The core callbacks: one concern of the training loop each, always installed.

Passing a subclass in `Trainer(callbacks=[...])` replaces the one of its kind. They read their
options from `trainer.settings`, so a subclass needs no constructor.
"""

from minitorch.callbacks.callback import Callback
from minitorch.callbacks.core.accumulation import Accumulation
from minitorch.callbacks.core.clipping import GradientClipping
from minitorch.callbacks.core.data_module import DataModuleHooks
from minitorch.callbacks.core.device import DevicePlacement
from minitorch.callbacks.core.finite import FiniteGradients
from minitorch.callbacks.core.flight import FlightCheck
from minitorch.callbacks.core.metric_log import MetricLog
from minitorch.callbacks.core.micro_batches import MicroBatches
from minitorch.callbacks.core.modes import Modes
from minitorch.callbacks.core.precision import Precision
from minitorch.callbacks.core.progress import ProgressCounters
from minitorch.callbacks.core.reload import ReloadLoaders
from minitorch.callbacks.core.schedules import Schedules
from minitorch.callbacks.core.unused import UnusedParameters
from minitorch.callbacks.core.waits import HostReads, LoaderWait, SlowModes
from minitorch.callbacks.core.zero_grad import ZeroGrad

__all__ = [
    "CORE",
    "Accumulation",
    "DataModuleHooks",
    "DevicePlacement",
    "FiniteGradients",
    "FlightCheck",
    "GradientClipping",
    "HostReads",
    "LoaderWait",
    "MetricLog",
    "MicroBatches",
    "Modes",
    "Precision",
    "ProgressCounters",
    "ReloadLoaders",
    "Schedules",
    "SlowModes",
    "UnusedParameters",
    "ZeroGrad",
]

CORE: tuple[type[Callback], ...] = (
    DataModuleHooks,
    ProgressCounters,
    ReloadLoaders,
    DevicePlacement,
    ZeroGrad,
    Modes,
    FlightCheck,
    UnusedParameters,
    LoaderWait,
    HostReads,
    SlowModes,
    Precision,
    Accumulation,
    MicroBatches,
    MetricLog,
    Schedules,
    FiniteGradients,
    GradientClipping,
)
"""The kinds, in the order in which they run where their `order` is equal."""
