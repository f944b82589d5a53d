"""Takes compiled bodies from disk without getting numba ready to compile.

Before numba looks for a function on disk, it imports all that compiled code may call and compiles
functions of its own: with its modules and LLVM's optimizer these are 30 MB that stay. Finished
machine code needs the names of some C functions alone.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba import njit
from numba.core.caching import FunctionCache

try:
    from numba.core.runtime._nrt_python import c_helpers
except ImportError:
    c_helpers = {}

for _name, _address in c_helpers.items():
    binding.add_symbol(_name if _name.startswith("_") else f"NRT_{_name}", _address)


def _import_arrays() -> None:
    """Imports numba's functions on arrays without SciPy, which takes a third of a second.

    numba imports it to see whether it is there, and again for code that uses it.
    """
    from numba.np import linalg

    before = linalg.ensure_blas

    def is_there() -> None:
        if importlib.util.find_spec("scipy") is None:
            before()

    linalg.ensure_blas = is_there
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = before


class _Stored(FunctionCache):
    """The compiled forms of one function on disk."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The function for a list of types; None, with numba ready to compile, if it is not there.

        Args:
            sig: The types.
            target_context: numba's description of this processor.
        """
        if c_helpers:
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)
            if found is not None:
                return found
        _import_arrays()
        return super().load_overload(sig, target_context)


def stored(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator as `numba.njit(cache=True, **options)`, for functions that Python calls."""

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher: Any = njit(**options)(function)
        dispatcher._cache = _Stored(function)
        return dispatcher

    return compiled


__all__ = ["stored"]
