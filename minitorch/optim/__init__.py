"""Optimizers and learning-rate schedules, with PyTorch's names, options and numbers."""

from ..lazy import lazy
from . import lr_scheduler
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

_HOLDERS = {
    "adadelta": "Adadelta",
    "adafactor": "Adafactor",
    "adamax": "Adamax",
    "asgd": "ASGD",
    "lbfgs": "LBFGS",
    "lion": "Lion",
    "muon": "Muon",
    "nadam": "NAdam",
    "radam": "RAdam",
    "rprop": "Rprop",
    "sparse_adam": "SparseAdam",
}

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
__getattr__, __dir__ = lazy(__name__, _HOLDERS, ["swa_utils"])
