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
_ON = ("1", "true", "yes", "on")


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
    environment variable MINITORCH_CALLBACK_PLUGINS=0 turns discovery off, and a list of names,
    "energy,speed", chooses entry points.

    In a package's pyproject.toml:

        [project.entry-points."minitorch.callbacks"]
        energy = "my_package.callbacks:EnergyMeter"
    """
    found = (_make(entry) for entry in _chosen(_installed()))
    return [one for one in found if one is not None]


def describe_plugins() -> str:
    """What is installed under the group, used or not: a line for each entry point.

    `python -m minitorch.callbacks` prints it.
    """
    entries = _installed()
    chosen = {entry.name for entry in _chosen(entries)}
    if not entries:
        return f"No installed package offers callbacks under the entry-point group {GROUP}."
    lines = []
    for entry in entries:
        if entry.name not in chosen:
            lines.append(f"{_source(entry)}: not used, {SWITCH}={os.environ[SWITCH]}")
            continue
        try:
            lines.append(str(Discovered(_source(entry), _as_callbacks(entry.load()()))))
        except Exception as error:
            lines.append(f"{_source(entry)}: broken, {type(error).__name__}: {error}")
    return "\n".join(lines)


def _installed() -> list[importlib.metadata.EntryPoint]:
    """All entry points of the group, by name."""
    return sorted(importlib.metadata.entry_points(group=GROUP), key=lambda entry: entry.name)


def _chosen(
    entries: list[importlib.metadata.EntryPoint],
) -> list[importlib.metadata.EntryPoint]:
    """Those that the environment variable leaves."""
    switch = os.environ.get(SWITCH, "").strip()
    if switch.lower() in _OFF:
        return []
    names = {name.strip() for name in switch.split(",")}
    return (
        entries if not switch or switch.lower() in _ON else [e for e in entries if e.name in names]
    )


def _source(entry: importlib.metadata.EntryPoint) -> str:
    package = entry.dist
    version = "" if package is None else f" of {package.name} {package.version}"
    return f"{entry.name} ({entry.value}){version}"


def _make(entry: importlib.metadata.EntryPoint) -> Discovered | None:
    source = _source(entry)
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
