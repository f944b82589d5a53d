"""How functions that are no operations take part in captured steps (`minitorch.capture`).

While a step is recorded, `primitive.tape` is its tape. Operations tell it what they compute; these
are for the rest, and cost one look at that variable otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

from . import primitive

F = TypeVar("F", bound=Callable[..., Any])


def as_a_whole(kind: str = "pure") -> Callable[[F], F]:
    """A decorator: a captured step calls the function again, with what it gets then.

    Args:
        kind: "pure" for a function of its arguments; "random" for one that draws; "check" for one
            that looks at values and answers with what is no tensor, or raises; "late" for one that
            changes its first argument, a tensor, and nothing else. Gradients do not pass it.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            tape = primitive.tape
            if tape is None:
                return function(*args, **kwargs)
            used = kind
            if kind == "late" and args[0] is not None:
                used = tape.changes(args[0], function.__name__.strip("_"))
            return tape.opaque(function, args, kwargs, used)

        return call  # type: ignore[return-value]

    return decorate


above: dict[CodeType, str] = {}
"""Public functions above the framework that a recording knows: why each ends it, or ""."""


def in_recordings(reason: str = "") -> Callable[[F], F]:
    """A decorator for packages above the framework, whose public functions end a recording.

    Args:
        reason: Why this one does; "" for one that neither looks at values nor keeps them.
    """

    def note(function: F) -> F:
        above[function.__code__] = reason
        return function

    return note


def copied(array: Any) -> Any:
    """A copy of an array."""
    copy = array.copy()
    if primitive.tape is not None:
        primitive.tape.call(_copy, (array,), {}, copy)
    return copy


def _copy(array: Any) -> Any:
    return array.copy()


def constant(t: Any) -> Any:
    """The tensor `t`, made of plain numbers alone."""
    if primitive.tape is not None:
        primitive.tape.constant(t._array)
    return t


def unrecordable(reason: str) -> None:
    """Says that what is being done cannot be part of a captured step."""
    if primitive.tape is not None:
        primitive.tape.broken(reason)
