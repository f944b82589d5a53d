"""Who uses how many threads: compiled kernels, and the BLAS under NumPy's matrix products."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from ..errors import ArgumentError

# Turns that GNU OpenMP's idle threads spin before they sleep. Its default, about a millisecond,
# keeps a core from BLAS and from other processes after every kernel.
SPIN_TURNS = "1000"


class _Here(threading.local):
    """What numba was told in this thread; it keeps a number for each."""

    number: int | None = None


_here = _Here()
_wanted: int | None = None
_limiter: Any = None


def prepare() -> None:
    """Called before numba is imported: GNU OpenMP reads the environment only when it is loaded."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_TURNS)


def apply() -> None:
    """Called before kernels run: gives those of this thread the number that was asked for."""
    if _wanted is not None and _here.number != _wanted:
        import numba

        most = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        numba.set_num_threads(min(_wanted, most))
        _here.number = _wanted


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
    from threadpoolctl import threadpool_limits

    _wanted = number
    _limiter = threadpool_limits(limits=number, user_api="blas")
    if "numba" in sys.modules:
        apply()


def get_num_threads() -> int:
    """How many threads matrix products use, and kernels at most."""
    if _wanted is not None:
        return _wanted
    from threadpoolctl import threadpool_info

    return max(
        (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"),
        default=os.cpu_count() or 1,
    )
