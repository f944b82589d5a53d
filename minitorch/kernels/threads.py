"""Who uses how many threads: one number, and one pool, that of the compiled kernels.

Kernels share out rows or blocks with `prange`. Matrix products are cut into blocks in the same
pool, each block a product of OpenBLAS on one thread (`cpu/blas.py`): the idle threads of a second
pool would spin while this one works. Where there is no numba, or NumPy has another BLAS, products
are NumPy's and use its threads. Threads of a DataLoader compute alone, each on its own core.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from ..errors import ArgumentError

# Turns that GNU OpenMP's idle threads spin before they sleep. Its default, about a millisecond,
# keeps a core from other processes after every kernel; one that sleeps at once costs a wake-up for
# each. A step calls kernels every few dozen microseconds.
SPIN_TURNS = "10000"


class _Here(threading.local):
    """What this thread may use; numba keeps a number for each thread too."""

    asked: int | None = 0  # the number that numba was told last; 0 before
    usable: int = 1
    alone: bool = False


_here = _Here()
_wanted: int | None = None
_limiter: Any = None
_products_are_ours = False


def prepare() -> None:
    """Called before numba is imported: GNU OpenMP reads the environment only when it is loaded."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_TURNS)


def _asked() -> int | None:
    """The number that was set, else that of the environment."""
    if _wanted is not None:
        return _wanted
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(text) if text.isdecimal() and int(text) > 0 else None


def apply() -> None:
    """Called before kernels run: gives those of this thread the number that was asked for."""
    if _here.asked == _wanted:
        return
    import numba

    most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    _here.usable = 1 if _here.alone else min(_asked() or most, most)
    numba.set_num_threads(_here.usable)
    from .cpu import team

    team.start(_here.usable - 1)
    _here.asked = _wanted


def count() -> int:
    """How many threads a kernel that is called in this thread uses; `apply` ran before."""
    return _here.usable


def compute_alone() -> None:
    """This thread is one of several that compute side by side: its kernels use it alone."""
    _here.alone = True
    _here.asked = 0


def own_products() -> None:
    """The kernels compute matrix products: OpenBLAS under NumPy stays at one thread from now on."""
    global _products_are_ours
    _products_are_ours = True


def set_num_threads(number: int) -> None:
    """Sets how many threads kernels and matrix products use, in this process.

    Args:
        number: At least 1. Kernels use at most as many as the machine has cores.

    Raises:
        ArgumentError: The number is not a positive integer.
    """
    global _wanted, _limiter
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ArgumentError(
            f"set_num_threads: the number must be a positive integer. Got {number!r}."
        )
    _wanted = number
    if not _products_are_ours:
        from threadpoolctl import threadpool_limits

        _limiter = threadpool_limits(limits=number, user_api="blas")
    if "numba" in sys.modules:
        apply()


def get_num_threads() -> int:
    """How many threads matrix products use, and kernels at most."""
    asked = _asked()
    if asked is not None:
        return asked
    if _products_are_ours:
        apply()
        return count()
    from threadpoolctl import threadpool_info

    return max(
        (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"),
        default=os.cpu_count() or 1,
    )
