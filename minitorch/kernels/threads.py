"""Who uses how many threads: one number, and one team, that of the compiled kernels.

Kernels are shared out to the team piece by piece (`cpu/team.py`), and matrix products are kernels
too: OpenBLAS under NumPy keeps to one thread where the kernels call it, since the idle threads of a
second pool would spin while the team works. Where there is no numba, or NumPy has another BLAS,
products are NumPy's and use its threads. Threads of a DataLoader compute alone, each on its own
core.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from ..errors import ArgumentError
from .unobserved import unobserved


class _Here(threading.local):
    """What this thread may use."""

    asked: int | None = 0  # the number that it was told last; 0 before
    usable: int = 1
    alone: bool = False


_here = _Here()
_wanted: int | None = None
_limiter: Any = None
_products_are_ours = False


def asked() -> int | None:
    """The number that was set, else that of the environment."""
    if _wanted is not None:
        return _wanted
    text = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(text) if text.isdecimal() and int(text) > 0 else None


def apply() -> None:
    """Gives kernels of this thread the number that was asked for last."""
    if _here.asked == _wanted:
        return
    with unobserved():
        from numba import config

        from .cpu import team

        most = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
        _here.usable = 1 if _here.alone else min(asked() or most, most)
        team.start(_here.usable - 1)
    _here.asked = _wanted


def count() -> int:
    """How many threads a kernel that is called in this thread uses."""
    if _here.asked != _wanted:
        apply()
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


def get_num_threads() -> int:
    """How many threads matrix products use, and kernels at most."""
    wanted = asked()
    if wanted is not None:
        return wanted
    if _products_are_ours:
        return count()
    from threadpoolctl import threadpool_info

    return max(
        (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"),
        default=os.cpu_count() or 1,
    )
