"""Keeps memory that arrays gave back with the process, so that the next step finds it there.

glibc hands every large block back to the system when it is freed. A training step allocates the
same sizes again at once, and each page of fresh memory costs a fault: up to a third of a step.
The kept memory asks for pages of 2 MB: with those of 4 kB a processor looks up places all the time.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# Parameters of mallopt and their values: blocks below 32 MB, the most that glibc allows, come from
# the heap, and the heap keeps up to 1 GB that is free.
_SETTINGS = ((-3, 32 << 20), (-1, 1 << 30))
_TOP_PAD, _USUAL_TOP_PAD = -2, 128 << 10  # by how much more than needed the heap grows
_RESERVED = 256 << 20  # bytes of the heap that ask for large pages; taken only when they are used
_LARGE_PAGE, _ADVICE = 2 << 20, 14  # MADV_HUGEPAGE
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
        _ask_for_large_pages(libc)


def _ask_for_large_pages(libc: Any) -> None:
    """Lets the heap grow into a range of addresses that the system may back with large pages.

    Source: madvise(2), sbrk(2), Linux manual pages.
    """
    import ctypes

    number, place = ctypes.c_size_t, ctypes.c_void_p
    libc.malloc.restype = libc.sbrk.restype = place
    size = _SETTINGS[0][1] // 2  # more than lies free at the end of the heap
    libc.mallopt(_TOP_PAD, _RESERVED)
    block = libc.malloc(number(size))
    libc.mallopt(_TOP_PAD, _USUAL_TOP_PAD)
    start, end = block or 0, libc.sbrk(number(0)) or 0
    if start and size < end - start <= _RESERVED + 2 * size:  # the block lies in the heap
        start = -(-start // _LARGE_PAGE) * _LARGE_PAGE
        libc.madvise(place(start), number(end - start), _ADVICE)
    libc.free(place(block))


__all__ = ["keep_freed_memory"]
