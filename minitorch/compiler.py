"""Names around `compile`, which leaves functions as they are."""

from __future__ import annotations

from typing import Any

from .settings import compile

__all__ = ["compile", "disable", "is_compiling", "is_dynamo_compiling", "reset"]


def disable(fn: Any = None, recursive: bool = True) -> Any:
    """The function itself, or a decorator that gives it."""
    return fn if fn is not None else lambda function: function


def is_compiling() -> bool:
    """False: there is no compiler here yet."""
    return False


is_dynamo_compiling = is_compiling


def reset() -> None:
    """Nothing to do."""
