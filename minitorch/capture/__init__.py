"""Captured steps: functions that record what they do and replay it. See README.md here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import ArgumentError
from .captured import BUDGET, Captured, CaptureError, CaptureWarning, every

__all__ = ["CaptureError", "CaptureWarning", "Captured", "compiled", "every"]


def compiled(model: Callable[..., Any], fullgraph: bool, budget: int | None) -> Any:
    """A compiled function, or the module itself, whose forward is compiled.

    Args:
        model: A function or module.
        fullgraph: Raise where a call cannot be recorded.
        budget: Most recordings; None for the default.
    """
    from ..nn.module import Module

    most = BUDGET if budget is None else budget
    if type(most) is not int or most < 1:
        raise ArgumentError(f"compile: max_recordings must be an integer ≥ 1. Got {budget!r}.")
    if isinstance(model, Captured):
        return model
    if not isinstance(model, Module):
        return Captured(model, fullgraph=fullgraph, budget=most)
    if not isinstance(model.forward, Captured):
        name = f"{type(model).__name__}.forward"
        made = Captured(model.forward, name=name, fullgraph=fullgraph, budget=most)
        object.__setattr__(model, "forward", made)
    return model
