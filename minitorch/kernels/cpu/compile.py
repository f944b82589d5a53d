"""How kernels are compiled: once for one thread and once for all, chosen by the work at hand."""

from __future__ import annotations

import time
import types
from collections.abc import Callable, Iterable
from typing import Any

from numba import njit

from .kernel import (
    FAST,
    NOTED_SECONDS,
    PARALLEL_FROM,
    inlined,
    intrinsic,
    note_compilation,
)


class Kernel:
    """A function on arrays, compiled by numba on first use and cached on disk.

    `prange` in the body shares out the work where the first array is large; results per element
    do not depend on the number of threads.

    Args:
        body: The Python function; its first argument is an array whose size tells the work.
        fastmath: Which liberties the compiler takes.
    """

    def __init__(self, body: Callable[..., None], fastmath: Iterable[str] = ()) -> None:
        options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
        options["fastmath"] = set(fastmath) or False
        self.parallel = njit(**options, parallel=True)(body)
        self.serial = njit(**options)(_twin(body))
        self._ran: set[Any] = set()

    def __call__(self, *args: Any) -> None:
        """Runs the kernel."""
        self._run(self.parallel if args[0].size >= PARALLEL_FROM else self.serial, args)

    def share(self, workers: int, *args: Any) -> None:
        """Runs a kernel whose last argument says how many threads take its blocks."""
        self._run(self.parallel if workers > 1 else self.serial, (*args, workers))

    def _run(self, body: Any, args: tuple[Any, ...]) -> None:
        if body in self._ran:
            body(*args)
            return
        start = time.perf_counter()
        body(*args)
        self._ran.add(body)
        note_compilation(time.perf_counter() - start)


def part(*, fastmath: Iterable[str] = ()) -> Any:
    """Decorator for what one thread does in kernels, compiled apart from them.

    The passes that make a body parallel take long, so that they had better see few lines.
    """
    return njit(cache=True, nogil=True, error_model="numpy", fastmath=set(fastmath) or False)


def _twin(body: Callable[..., None]) -> Callable[..., None]:
    """The same function under another name, since numba's cache goes by the name."""
    twin = types.FunctionType(
        body.__code__, body.__globals__, body.__name__, body.__defaults__, body.__closure__
    )
    twin.__qualname__ = f"{body.__qualname__}_serial"
    return twin


def kernel(*, fastmath: Iterable[str] = ()) -> Callable[[Callable[..., None]], Kernel]:
    """Decorator for the body of a Kernel."""
    return lambda body: Kernel(body, fastmath)


__all__ = [
    "FAST",
    "NOTED_SECONDS",
    "PARALLEL_FROM",
    "inlined",
    "intrinsic",
    "kernel",
    "note_compilation",
    "part",
]
