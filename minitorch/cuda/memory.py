"""GPU memory; without a GPU nothing is in use. The numbers are those of CuPy's pool."""

from __future__ import annotations

import time
from typing import Any

from .. import backend
from ..autograd.mode import state
from . import index_of, is_available


def _pool(device: Any) -> Any:
    """CuPy's memory pool of a GPU, or None."""
    if not is_available():
        return None
    cupy = backend.get("cuda").xp
    with cupy.cuda.Device(index_of(device)):
        return cupy.get_default_memory_pool()


def memory_allocated(device: Any = None) -> int:
    """Bytes that arrays on the GPU take; 0 without a GPU."""
    pool = _pool(device)
    return 0 if pool is None else int(pool.used_bytes())


def memory_reserved(device: Any = None) -> int:
    """Bytes that the pool holds, used or not; 0 without a GPU."""
    pool = _pool(device)
    return 0 if pool is None else int(pool.total_bytes())


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that the pool held since the last reset: it gives nothing back by itself."""
    return memory_reserved(device)


def max_memory_allocated(device: Any = None) -> int:
    """An upper bound of the most bytes in use since the last reset: what the pool holds."""
    return memory_reserved(device)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def empty_cache() -> None:
    """Gives memory that no array uses back to the GPU; nothing to do without one."""
    start = time.perf_counter()
    pool = _pool(None)
    if pool is not None:
        pool.free_all_blocks()
    if state.on_empty_cache is not None:
        state.on_empty_cache(time.perf_counter() - start)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Lets the maxima start again: the pool gives back what is unused."""
    empty_cache()


reset_max_memory_allocated = reset_peak_memory_stats


def ipc_collect() -> None:
    """Nothing to do: no memory is shared between processes."""


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of the GPU.

    Raises:
        DeviceError: There is no GPU.
    """
    cupy = backend.get("cuda").xp
    with cupy.cuda.Device(index_of(device)):
        free, total = cupy.cuda.runtime.memGetInfo()
    return int(free), int(total)


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The numbers above as text."""
    used, held = memory_allocated(device), memory_reserved(device)
    return f"memory in use: {used / 2**20:.1f} MiB\nmemory held:   {held / 2**20:.1f} MiB\n"
