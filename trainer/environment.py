"""Arguments of a Trainer from the environment: PL_TRAINER_MAX_EPOCHS=3 python train.py."""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, TypeVar

from minitorch.errors import ArgumentError
from minitorch.ranks import place

PREFIX = "PL_TRAINER_"
_NAMES = {"true": True, "false": False, "none": None, "null": None}

Init = TypeVar("Init", bound=Callable[..., None])


def from_environment(init: Init) -> Init:
    """Lets variables of the environment stand for arguments that are not passed.

    The prefix is Lightning's. Values are Python's literals, else texts; true, false and none in any
    case are such literals, an empty value is none at all, a folder is a text. What is taken is
    printed.

    Raises:
        ArgumentError: A variable with the prefix names no argument.
    """
    known = _arguments(init)

    @functools.wraps(init)
    def with_defaults(self: Any, *args: Any, **given: Any) -> None:
        found = _found(known, given)
        tell(found)
        init(self, *args, **{**found, **given})

    return with_defaults  # type: ignore[return-value]


def defaults(kind: type, given: dict[str, Any]) -> dict[str, Any]:
    """What the environment says of the arguments of a Trainer, but for those that are given.

    Raises:
        ArgumentError: A variable with the prefix names no argument.
    """
    return _found(_arguments(kind), given)


def tell(found: dict[str, Any]) -> None:
    """Prints what was taken, on the first process."""
    if found and place()[0] == 0:
        shown = ", ".join(f"{name}={value!r}" for name, value in found.items())
        print(f"Trainer: {shown} from the environment ({PREFIX}...)")


def _arguments(of: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(of).parameters if name not in ("self", "unknown")]


def _found(known: list[str], given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable in sorted(v for v in os.environ if v.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX).lower()
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {PREFIX}{close[0].upper()}?" if close else "Unset it."
            raise ArgumentError(f"{variable}: the Trainer has no argument {name!r}. {hint}")
        text = os.environ[variable].strip()
        if name not in given and text:
            found[name] = text if name == "default_root_dir" else _value(text)
    return found


def _value(text: str) -> Any:
    if text.lower() in _NAMES:
        return _NAMES[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
