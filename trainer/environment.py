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

Init = TypeVar("Init", bound=Callable[..., None])


def from_environment(init: Init) -> Init:
    """Lets variables of the environment stand for arguments that are not passed.

    The prefix is Lightning's. Values are Python's literals, else texts; what is taken is printed.

    Raises:
        ArgumentError: A variable with the prefix names no argument.
    """
    known = [name for name in inspect.signature(init).parameters if name not in ("self", "unknown")]

    @functools.wraps(init)
    def with_defaults(self: Any, *args: Any, **given: Any) -> None:
        init(self, *args, **{**_found(known, given), **given})

    return with_defaults  # type: ignore[return-value]


def _found(known: list[str], given: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable in sorted(v for v in os.environ if v.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX).lower()
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {PREFIX}{close[0].upper()}?" if close else "Unset it."
            raise ArgumentError(f"{variable}: the Trainer has no argument {name!r}. {hint}")
        if name not in given:
            found[name] = _value(os.environ[variable])
    if found and place()[0] == 0:
        shown = ", ".join(f"{name}={value!r}" for name, value in found.items())
        print(f"Trainer: {shown} from the environment ({PREFIX}...)")
    return found


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
