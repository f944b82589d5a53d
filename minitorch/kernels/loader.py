"""Finds the compiled bodies of a family of operations, or says that there are none."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

_loaded: dict[str, ModuleType | None] = {}


def load(family: str) -> ModuleType | None:
    """The module `minitorch.kernels.cpu.<family>`.

    Args:
        family: `"special"`, `"optim"`, `"conv"`, …

    Returns:
        The module; None where numba cannot be imported or MINITORCH_KERNELS is `off`.
    """
    if family not in _loaded:
        _loaded[family] = _import(family)
    return _loaded[family]


def _import(family: str) -> ModuleType | None:
    if os.environ.get("MINITORCH_KERNELS", "on") == "off":
        return None
    try:
        import numba  # noqa: F401
    except ImportError:
        return None
    return importlib.import_module(f"minitorch.kernels.cpu.{family}")
