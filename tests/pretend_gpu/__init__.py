"""A strict pretend GPU: CuPy's arrays and namespace without a GPU, for tests of device logic.

The arrays refuse to mix with NumPy and refuse implicit conversion, kernels refuse arrays of
another device, and every transfer, wait and allocation is counted in `counters`, in total and by
the line that caused it. Where NumPy and CuPy differ in silence (indices out of range, repeated
indices, singular matrices) it raises `Diverged`. See README.md here.
"""

from __future__ import annotations

from typing import Any

import numpy as _np

from . import cuda, functions, surface
from .arrays import ndarray
from .boundary import Diverged, bfloat16_accepted
from .counting import Counters, Snapshot, Tally, counters
from .functions import fft, linalg
from .ufuncs import ufunc

__version__ = "13.6.0"

__all__ = [
    "Counters",
    "Diverged",
    "Snapshot",
    "Tally",
    "bfloat16_accepted",
    "counters",
    "cuda",
    "fft",
    "linalg",
    "ndarray",
    "ufunc",
]

_ufuncs = {name: ufunc(getattr(_np, name), name) for name in surface.UFUNCS}


def __getattr__(name: str) -> Any:
    if name in _ufuncs:
        return _ufuncs[name]
    if name in functions.ALL:
        return functions.ALL[name]
    if name in surface.FROM_NUMPY:
        return getattr(_np, name)
    if name in surface.LEFT_OUT:
        raise AttributeError(f"CuPy has {name!r}, the pretend GPU leaves it out")
    raise AttributeError(f"module 'cupy' has no attribute {name!r}")


def get_default_memory_pool() -> cuda.MemoryPool:
    """The pool of the current device."""
    return cuda.MemoryPool()


def is_available() -> bool:
    """True: the pretend GPU is always there."""
    return True
