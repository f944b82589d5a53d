"""What a kernel is: a body, compiled on first use, and shared out to threads.

A kernel is a function `body(first, last, *args)` that works on the items from first to last of
arrays: rows, channels, blocks. It is compiled once for each list of types (`compiler.py`), without
threads in it; numba's `prange` in a body would compile it for every form again, which takes
seconds. The team of threads (`team.py`) calls it piece by piece. The pieces follow from the number
of items alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numba.extending
from numba import njit

from .. import ahead, loader, threads
from . import team
from .compiler import ROUND_BITS, BodyCompiler, WrittenOutCompiler
from .stored import stored

# Elements of the first argument from which a second thread pays; waking one costs microseconds.
PARALLEL_FROM = 32768

# Sums may be reordered so that they become vector code; nan and inf stay what they are.
FAST = frozenset(("reassoc", "contract", "nsz", "arcp"))

# Without numba's types, which count the typing context among the arguments of a call.
intrinsic: Any = numba.extending.intrinsic


class Kernel:
    """A body on arrays, compiled on first use and cached on disk.

    Args:
        body: `body(first, last, *args)` works on some of the items; results of an item do not
            depend on which others are worked on with it. Its first argument after these two is
            an array, whose size tells the work.
        fastmath: Which liberties the compiler takes.
        written_out: Whether the inner loops are vector code already (`vector.py`), so that the
            compiler need not look for it.

    Attributes:
        written_out: See above; compiling such a body takes about a second.
    """

    def __init__(
        self, body: Callable[..., None], fastmath: Iterable[str] = (), written_out: bool = False
    ) -> None:
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        options["fastmath"] = set(fastmath) or False
        options["pipeline_class"] = WrittenOutCompiler if written_out else BodyCompiler
        self.body, self.name, self.written_out = body, ahead.body_name(body), written_out
        with loader.own_cache():  # also for bodies that are made while the program runs
            self._entry = stored(**options)(body)
        self._make = self._entry.compile
        self._entry.compile = self._make_alone

    def __call__(self, items: int, *args: Any) -> None:
        """Works on all items, as of `share`, in several threads if the first array is large."""
        alone = args[0].size < PARALLEL_FROM
        self._entry(items, 0 if alone else team.of(threads.count()), *args)

    def share(self, workers: int, items: int, *args: Any) -> None:
        """Works on all items with so many threads.

        Args:
            workers: The threads; 0 is for work that is too little for pieces.
            items: How many, or `in_rounds` of them.
            args: Those of the body.
        """
        self._entry(items, team.of(workers) if workers else 0, *args)

    def types(self, items: int, *args: Any) -> tuple[Any, ...]:
        """The list of types for which these arguments need machine code."""
        return tuple(self._entry.typeof_pyval(a) for a in (items, 0, *args))

    def compile(self, types: tuple[Any, ...], wait: bool = True) -> bool:
        """Sees to it that machine code for a list of types lies on disk.

        Args:
            types: Those of a call.
            wait: Whether to wait if another process compiles the body now.

        Returns:
            False if another process compiles it.
        """
        with ahead.claim(self._entry.stats.cache_path, self.name, wait) as free:
            if free:
                self._make(types)
        return free

    def _make_alone(self, types: tuple[Any, ...]) -> Any:
        with ahead.claim(self._entry.stats.cache_path, self.name):
            return self._make(types)


def in_rounds(first: int, second: int) -> int:
    """The number of items where the last ones begin when all the first are done."""
    return first | second << ROUND_BITS


def kernel(
    *, fastmath: Iterable[str] = (), written_out: bool = False
) -> Callable[[Callable[..., None]], Kernel]:
    """Decorator for the body of a Kernel."""
    return lambda body: Kernel(body, fastmath, written_out)


def inlined(body: Callable[..., Any]) -> Any:
    """Decorator for a function that becomes a piece of each body that calls it.

    Compiled on its own it would be optimised once more for every level of calls.
    """
    return njit(inline="always", error_model="numpy")(body)
