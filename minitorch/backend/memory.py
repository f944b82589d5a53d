"""Keeps memory that arrays gave back with the process, so that the next step finds it there.

glibc hands every large block back to the system when it is freed. A training step allocates the
same sizes again at once, and each page of fresh memory costs a fault: up to a third of a step.
"""

from __future__ import annotations

import os
import sys

# Parameters of mallopt and their values: blocks below 32 MB, the most that glibc allows, come from
# the heap, and the heap keeps up to 1 GB that is free.
_SETTINGS = ((-3, 32 << 20), (-1, 1 << 30))
_OWN_CHOICE = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")

_done = False


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
    import ctypes

    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version") and hasattr(libc, "mallopt"):
        for parameter, value in _SETTINGS:
            libc.mallopt(parameter, value)


__all__ = ["keep_freed_memory"]
