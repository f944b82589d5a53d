"""Callbacks from installed packages, found through an entry-point group."""

from __future__ import annotations

import importlib.metadata
import os
import warnings
from dataclasses import dataclass
from typing import Any

from minitorch.callbacks.callback import Callback

GROUP = "minitorch.callbacks"
SWITCH = "MINITORCH_CALLBACK_PLUGINS"
_OFF = ("0", "false", "no", "off")


@dataclass(frozen=True)
class Discovered:
    """What one entry point gave.

    Attributes:
        source: Names of the entry point and of its package, with its version.
        callbacks: New callbacks.
    """

    source: str
    callbacks: tuple[Callback, ...]

    def __str__(self) -> str:
        names = ", ".join(type(callback).__name__ for callback in self.callbacks) or "none"
        return f"{names} from {self.source}"


def discover_callbacks() -> list[Discovered]:
    """Makes the callbacks that installed packages offer under the group `minitorch.callbacks`.

    An entry point names a Callback class, or a function that returns a Callback or a list of
    them; it is called without arguments. One that fails is left out with a warning. The
    environment variable MINITORCH_CALLBACK_PLUGINS=0 turns discovery off.

    In a package's pyproject.toml:

        [project.entry-points."minitorch.callbacks"]
        energy = "my_package.callbacks:EnergyMeter"
    """
    if os.environ.get(SWITCH, "").strip().lower() in _OFF:
        return []
    entries = importlib.metadata.entry_points(group=GROUP)
    found = (_make(entry) for entry in sorted(entries, key=lambda entry: entry.name))
    return [one for one in found if one is not None]


def _make(entry: importlib.metadata.EntryPoint) -> Discovered | None:
    package = entry.dist
    version = "" if package is None else f" of {package.name} {package.version}"
    source = f"{entry.name} ({entry.value}){version}"
    try:
        callbacks = _as_callbacks(entry.load()())
    except Exception as error:
        warnings.warn(
            f"callback plug-in {source} is left out: {type(error).__name__}: {error}. "
            f"Update or remove the package, or set {SWITCH}=0 to use no plug-ins.",
            UserWarning,
            stacklevel=3,
        )
        return None
    return Discovered(source, callbacks)


def _as_callbacks(made: Any) -> tuple[Callback, ...]:
    several = tuple(made) if isinstance(made, list | tuple) else (made,)
    for callback in several:
        if not isinstance(callback, Callback):
            raise TypeError(
                "it must give objects of subclasses of minitorch.callbacks.Callback, "
                f"but gave {callback!r}"
            )
    return several
