"""Automatic differentiation: recording, backward, and the tools around them."""

from typing import TYPE_CHECKING

from ..lazy import lazy
from .mode import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
)

if TYPE_CHECKING:
    from .check import gradcheck, gradgradcheck
    from .engine import backward, grad
    from .function import Function, once_differentiable
    from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]

_HOLDERS = {
    "check": "gradcheck gradgradcheck",
    "engine": "backward grad",
    "function": "Function once_differentiable",
    "threads": "set_multithreading_enabled",
    "variable": "Variable",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS, ("function", "functional", "graph", "profiler"))
