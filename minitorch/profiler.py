"""The profiler's names: labels can stay in programs; measuring is left to Python's own tools."""

from __future__ import annotations

import contextlib
import enum
from typing import Any, NoReturn

__all__ = [
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What PyTorch's profiler watches."""

    CPU = 0
    CUDA = 2


class record_function(contextlib.ContextDecorator):
    """A label for a part of the program; it changes nothing.

    Args:
        name: The label.
        args: Accepted for PyTorch's signature.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        return self

    def __exit__(self, *exc: Any) -> None:
        return None


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"profiler.{name}: there is no profiler of operations here. They are Python calls, so "
        "cProfile shows each: python -m cProfile -s tottime program.py."
    )


class profile:
    """Raises when it is made: Python's own profilers see every operation.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("profile")


def schedule(**kwargs: Any) -> NoReturn:
    """Raises: there is no profiler that could follow it."""
    _refuse("schedule")


def tensorboard_trace_handler(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no profiler whose traces it could write."""
    _refuse("tensorboard_trace_handler")
