"""Learning-rate schedules, with PyTorch's names, options and numbers.

Two differences, both beyond the end of a schedule: `CosineAnnealingLR` and `OneCycleLR` stay at
their last rate, where PyTorch rises again or raises.
"""

from ...lazy import lazy
from .base import LRScheduler
from .composed import ChainedScheduler, SequentialLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .decay import ConstantLR, ExponentialLR, LinearLR, MultiStepLR, PolynomialLR, StepLR
from .functional import LambdaLR, MultiplicativeLR
from .one_cycle import OneCycleLR
from .plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler
_HOLDERS = {"cyclic": "CyclicLR", "warmup": "WarmupCosine"}
__getattr__, __dir__ = lazy(__name__, _HOLDERS)

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
