"""What the Trainer does about a pitfall: an error, a warning, or nothing."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from minitorch.autograd.node import user_level, user_line
from minitorch.checks import KNOWN, is_intended
from minitorch.errors import PitfallWarning, TrainerError

if TYPE_CHECKING:
    from minitorch.trainer.task import TaskModule

LEVELS = ("off", "warn", "on", "strict")
_ROOT = str(Path(__file__).parents[1])
OURS = tuple(f"{_ROOT}/{part}/" for part in ("trainer", "callbacks", "loggers"))
"""Folders that hold no line of a user, beside the framework's own."""
_MARKED = ("training_step", "validation_step", "configure_optimizers", "forward", "setup")


class Checks:
    """One run's way with pitfalls: `Trainer(checks=...)` sets the level.

    "off" looks at nothing, "warn" makes warnings of errors, "on" is the default, "strict" makes
    errors of warnings. A warning comes once in a run and is kept in `FitResult.warnings`.

    Args:
        level: One of LEVELS.
        module: The task; `@intended(...)` on its methods is honoured.

    Attributes:
        on: Whether anything is looked at.
        found: The warnings so far.
    """

    def __init__(self, level: str, module: TaskModule | None = None) -> None:
        self.level = level
        self.on = level != "off"
        self.found: list[str] = []
        self._warned: set[str] = set()
        methods = [getattr(module, name, None) for name in _MARKED]
        self._blocks = [b for m in methods for b in getattr(m, "__intended__", ())]

    def meant(self, check: str, name: str | None = None) -> bool:
        """Whether the task says that this is as it should be; always so with checks off."""
        if not self.on:
            return True
        return self.said(check, name)

    def said(self, check: str, name: str | None = None) -> bool:
        """Whether the task says so, at every level of checks."""
        return is_intended(check, name, self._blocks) or is_intended(check, name)

    def error(self, check: str, message: str, kind: type[Exception] = TrainerError) -> None:
        """Raises, unless the level is "warn".

        Args:
            check: Id of the pitfall.
            message: The rule, what came, and the fix.
            kind: Class of the error.
        """
        if not self.on:
            return
        text = self._text(check, message)
        if self.level != "warn":
            raise kind(text)
        self._warn(check, text)

    def warn(self, check: str, message: str) -> None:
        """Warns once in a run; raises if the level is "strict"."""
        if not self.on or check in self._warned:
            return
        text = self._text(check, message)
        if self.level == "strict":
            raise TrainerError(text)
        self._warn(check, text)

    def _warn(self, check: str, text: str) -> None:
        self._warned.add(check)
        self.found.append(text)
        warnings.warn(text, PitfallWarning, stacklevel=user_level(skip=OURS))

    @staticmethod
    def _text(check: str, message: str) -> str:
        if check in KNOWN and "intended(" not in message:
            message += f' If it is meant: intended("{check}").'
        return f"{message} [{check}]"

    @staticmethod
    def line() -> str:
        """The user's line that is being run."""
        return user_line(skip=OURS)


def refuse_level(level: object) -> NoReturn:
    """Raises the error of a level that does not exist."""
    from minitorch.errors import ArgumentError

    raise ArgumentError(
        f"Trainer: checks must be one of {', '.join(map(repr, LEVELS))}. Got {level!r}."
    )
