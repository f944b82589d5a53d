"""Takes compiled bodies from disk without getting numba ready to compile.

Before numba looks for a function on disk, it imports all that compiled code may call and compiles
functions of its own: with its modules and LLVM's optimizer these are 30 MB that stay. Finished
machine code needs the names of some C functions alone.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pickle
import warnings
import zlib
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

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


class _Files(IndexDataCacheFile):
    """numba's files of one function, of which those that were cut or garbled count as missing.

    A full disk or a loss of power leaves such files; what lies in them would be run.
    """

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # whatever unpickling makes of it; it is written anew
            return {}

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            data = file.read()
        if zlib.crc32(data[:-4]).to_bytes(4, "little") != data[-4:]:
            raise OSError(f"{name} is damaged")  # numba takes it for a file that was removed
        return pickle.loads(data)

    def _save_data(self, name: str, data: Any) -> None:
        written = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(written + zlib.crc32(written).to_bytes(4, "little"))


class _Stored(FunctionCache):
    """The compiled forms of one function on disk."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

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

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keeps a compiled function, which this process uses also where the disk is full.

        Args:
            sig: The types.
            data: What the compiler made.
        """
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _say_once(self._cache_path, error.strerror or str(error))


@functools.cache
def _say_once(folder: str, error: str) -> None:
    warnings.warn(
        f"minitorch: compiled kernels cannot be kept in {folder}: {error}. The next run compiles "
        "them again. Make room there, or let NUMBA_CACHE_DIR name another folder.",
        RuntimeWarning,
        stacklevel=2,
    )


def stored(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator as `numba.njit(cache=True, **options)`, for functions that Python calls."""

    def compiled(function: Callable[..., Any]) -> Any:
        dispatcher: Any = njit(**options)(function)
        dispatcher._cache = _Stored(function)
        return dispatcher

    return compiled


__all__ = ["stored"]
