"""Automatic differentiation: recording, backward, and the tools around them."""

from typing import TYPE_CHECKING

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

__all__ = [
    "Function",
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

_LATER = {
    "backward": "engine",
    "grad": "engine",
    "Function": "function",
    "once_differentiable": "function",
    "gradcheck": "check",
    "gradgradcheck": "check",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
