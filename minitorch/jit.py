"""TorchScript's names: its annotations mean nothing here, and programs run eagerly."""

from __future__ import annotations

from typing import Any, Final, NoReturn, TypeVar

from .settings import note_eager

__all__ = [
    "Final",
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "load",
    "save",
    "script",
    "script_method",
    "trace",
    "unused",
]
T = TypeVar("T")


def is_scripting() -> bool:
    """False: nothing is ever compiled from its source."""
    return False


def is_tracing() -> bool:
    """False: nothing is ever recorded for export."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself; also written `@ignore(drop=True)`."""
    return drop if callable(drop) else lambda function: function


def unused(fn: T) -> T:
    """The function itself."""
    return fn


def export(fn: T) -> T:
    """The function itself."""
    return fn


script_method = export


def annotate(the_type: Any, the_value: T) -> T:
    """The value itself.

    Args:
        the_type: Not looked at.
        the_value: What is returned.
    """
    return the_value


def script(obj: T, *args: Any, **kwargs: Any) -> T:
    """The function, class or module itself, with a warning: it goes on running eagerly.

    Args:
        obj: What is returned.
    """
    note_eager("jit.script")
    return obj


def trace(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no traced form that could be saved."""
    _refuse("trace")


def save(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no TorchScript to save."""
    _refuse("save")


def load(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: TorchScript files hold programs, which are not run."""
    _refuse("load")


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"jit.{name}: there is no TorchScript here. Call the module itself, and keep its weights "
        "with minitorch.save(module.state_dict(), path)."
    )
