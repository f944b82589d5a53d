"""Lightning's module paths below `minitorch.trainer`, for programs that changed their imports."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minitorch.trainer.lightning_hints import ELSEWHERE

_PACKAGE = "minitorch.trainer."
_REAL = {"callbacks": "minitorch.callbacks", "loggers": "minitorch.loggers"}


class LightningPaths:
    """Finds `minitorch.trainer.callbacks` and `.loggers`, which are the modules one level up.

    It stands in front of Python's finders, which would load files of a package that has two
    names twice, and so make a second class of each.
    """

    @classmethod
    def find_spec(cls, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The place of one of these paths; None for all others.

        Raises:
            ModuleNotFoundError: Lightning has it, and here it is elsewhere.
        """
        if not fullname.startswith(_PACKAGE):
            return None
        head = fullname.removeprefix(_PACKAGE).partition(".")[0]
        if head in _REAL:
            loader: Any = cls
            return ModuleSpec(fullname, loader, is_package=True)
        if head in ELSEWHERE:  # without name=, which `from package import name` would swallow
            raise ModuleNotFoundError(f"No module or name {fullname!r}. {ELSEWHERE[head]}")
        return None

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """None: Python makes an empty module, which is replaced at once."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Puts the module that it is in place of the empty one."""
        head, dot, rest = module.__name__.removeprefix(_PACKAGE).partition(".")
        sys.modules[module.__name__] = importlib.import_module(_REAL[head] + dot + rest)


def install() -> None:
    """From now on Python asks it first."""
    if LightningPaths not in sys.meta_path:
        sys.meta_path.insert(0, LightningPaths)
