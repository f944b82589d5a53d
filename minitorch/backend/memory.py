"""Where arrays lie; keeps memory that they gave back with the process for the next step.

glibc hands every large block back to the system when it is freed. A training step allocates the
same sizes again at once, and each page of fresh memory costs a fault: up to a third of a step.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import numpy as np

# Parameters of mallopt and their values: blocks below 32 MB, the most that glibc allows, come from
# the heap, and the heap keeps up to 1 GB that is free.
_SETTINGS = ((-3, 32 << 20), (-1, 1 << 30))
_OWN_CHOICE = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")

_done = False

# An array keeps the address of its numbers behind what all objects begin with (NumPy's C API,
# PyArrayObject). To read it there takes a tenth of the time that NumPy's ways to ask for it do.
HEAD = object.__basicsize__
_word_at = ctypes.c_ssize_t.from_address


def _asked(array: Any) -> int:
    place: int = array.__array_interface__["data"][0]
    return place


def _is_there(array: Any) -> bool:
    return _word_at(id(array) + HEAD).value == _asked(array)


READABLE = _is_there(np.zeros(1))


def address(array: Any) -> int:
    """Where the numbers of a NumPy array begin."""
    return _word_at(id(array) + HEAD).value if READABLE else _asked(array)


def keep_freed_memory() -> None:
    """Called when large arrays are first used; does nothing without glibc or after a user's choice.

    Source: mallopt(3), Linux manual pages.
    """
    global _done
    if _done or not sys.platform.startswith("linux"):
        return
    _done = True
    if any(name in os.environ for name in _OWN_CHOICE) or "GLIBC_TUNABLES" in os.environ:
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "mallopt"):
        for parameter, value in _SETTINGS:
            libc.mallopt(parameter, value)


__all__ = ["HEAD", "READABLE", "address", "keep_freed_memory"]
