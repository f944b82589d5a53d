"""Names of a package that load the module that holds them on first use."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

_package = sys.modules[__name__.partition(".")[0]]
if getattr(_package, "__file__", None) is None:  # a folder without __init__.py took its place
    raise ImportError(
        "minitorch: a folder of that name hides the package. Python found "
        f"{', '.join(_package.__path__)}, beside your script or where it was started. Rename "
        "that folder (a clone may have any name), or keep the script elsewhere."
    )


def missing(package: str, name: str, known: Iterable[str]) -> str:
    """The text of an AttributeError, with the name that was probably meant."""
    text = f"module {package!r} has no attribute {name!r}"
    if name.startswith("_"):
        return text
    near = difflib.get_close_matches(name, {*known, *vars(sys.modules[package])}, n=1, cutoff=0.75)
    return f"{text}. Did you mean {near[0]!r}?" if near else text


def lazy(
    package: str, holders: dict[str, str], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names load late.

    Args:
        package: `__name__` of the package.
        holders: Each module, relative to the package, with the names that it holds.
        modules: Modules and packages that are names themselves.

    Returns:
        Two functions; assign them to `__getattr__` and `__dir__` of the package.
    """
    holder_of = {name: holder for holder, names in holders.items() for name in names.split()}
    whole = frozenset(modules)

    def load(name: str) -> Any:
        if name in whole:
            return importlib.import_module(f"{package}.{name}")
        if name not in holder_of:
            raise AttributeError(missing(package, name, {*holder_of, *whole}))
        value = getattr(importlib.import_module(f"{package}.{holder_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *holder_of, *whole})

    return load, names
