"""How kernels are compiled, and shared out to threads.

A kernel is a function `body(first, last, *args)` that works on the items from first to last of
arrays: rows, channels, blocks. It is compiled once for each list of types, without threads in it;
numba's `prange` in a body would compile it for every form again, which takes seconds. What calls it
is small: `_run`, one a list of types, puts the arguments where threads find them, and the team of
threads (`team.py`) calls the body piece by piece by its address. The pieces follow from the number
of items alone.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import time
import types as python_types
from collections.abc import Callable, Iterable
from typing import Any

import numba
import numba.extending
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.compiler import Compiler

from .. import threads
from . import team
from .team import PIECE_TYPE, call_piece

# Elements of the first argument from which a second thread pays; waking one costs microseconds.
PARALLEL_FROM = 32768

# Sums may be reordered so that they become vector code; nan and inf stay what they are.
FAST = frozenset(("reassoc", "contract", "nsz", "arcp"))

_PIECES = 16  # into which the items are cut at most

# Without numba's types, which count the typing context among the arguments of a call.
intrinsic: Any = numba.extending.intrinsic

# A first call that takes longer is told to the user.
NOTED_SECONDS = 1.0
_noted = False

_I64 = ir.IntType(64)
_TEAM = (types.int64,) * 6  # what `team.share_out` is given


def note_compilation(seconds: float) -> None:
    """Says once in a process why it waited, on the standard error stream."""
    global _noted
    if not _noted and seconds > NOTED_SECONDS:
        _noted = True
        print(
            f"minitorch: compiling kernels for this machine, once ({seconds:.1f} s for the first). "
            "`python -m minitorch.kernels --build` compiles common layers ahead.",
            file=sys.stderr,
        )


def _address(dispatcher: Any, kinds: tuple[Any, ...]) -> int:
    """Where the machine code for arguments of these types lies; compiled, or from disk."""
    dispatcher.compile(kinds)
    compiled = dispatcher.overloads[kinds]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)


def _call_at(context: Any, builder: Any, address: Any, kinds: Any, values: Any) -> None:
    """Calls what numba compiled for these types, by its address."""
    result, *given = (context.get_value_type(kind) for kind in (types.none, *kinds))
    function = builder.inttoptr(address, ir.FunctionType(result, given).as_pointer())
    builder.call(function, values)


def _number_of(kinds: Any) -> int:
    """A number for a list of types, the same in every process."""
    return int.from_bytes(hashlib.sha256(str(kinds).encode()).digest()[:8], "big") >> 2


@intrinsic
def _types_of(typing_context, args):  # type: ignore[no-untyped-def]
    """The number of the types of a tuple."""
    number = _number_of(args.types)
    return types.int64(args), lambda context, builder, signature, values: _I64(number)


@intrinsic
def _prepared(typing_context, address, args):  # type: ignore[no-untyped-def]
    """A body for a tuple of arguments: as a piece, and what it is given."""
    kinds = (types.int64, types.int64, *args.types)

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = cgutils.alloca_once_value(builder, cgutils.make_anonymous_struct(builder, values))
        module = builder.module
        piece = ir.Function(module, PIECE_TYPE, module.get_unique_name("piece"))
        piece.linkage = "internal"
        inside = ir.IRBuilder(piece.append_basic_block())
        first, last, data = piece.args
        found = inside.load(inside.bitcast(data, given.type))
        body, packed = (inside.extract_value(found, i) for i in range(2))
        arguments = cgutils.unpack_tuple(inside, packed, len(args.types))
        _call_at(context, inside, body, kinds, [first, last, *arguments])
        inside.ret_void()
        addresses = [builder.ptrtoint(a, _I64) for a in (piece, given)]
        return cgutils.pack_array(builder, addresses)

    return types.UniTuple(types.int64, 2)(types.int64, args), code


@intrinsic
def _call_team(typing_context, address, state, piece, given, items, pieces, workers):  # type: ignore[no-untyped-def]
    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _call_at(context, builder, values[0], _TEAM, values[1:])
        return context.get_dummy_value()

    return types.void(types.int64, *_TEAM), code


def _run(bodies, items, workers, *args):  # type: ignore[no-untyped-def]
    """Calls a body on all items; False if there is none yet for these types.

    `bodies`: the addresses of the function that shares out and of the team's words; the number of a
    list of types and the address of the body for them, and so on; 0. `workers`: how many threads
    take part; 0 for a call as it is.
    """
    number = _types_of(args)
    i = 2
    while bodies[i] != number:
        if bodies[i] == 0:
            return False
        i += 2
    piece, given = _prepared(bodies[i + 1], args)
    if workers == 0:
        call_piece(piece, 0, items, given)
    else:
        _call_team(bodies[0], bodies[1], piece, given, items, min(items, _PIECES), workers)
    return True


@functools.cache
def _runner(count: int) -> Any:
    """`_run` for bodies with so many arguments; one for all would have to search a longer list."""
    function = python_types.FunctionType(_run.__code__, _run.__globals__, f"_run_{count}")
    function.__qualname__ = function.__name__
    return njit(cache=True, nogil=True)(function)


class _Unshared(Compiler):
    """Compiles bodies as if no two of their arrays lie in the same memory, so that loops over
    several become vector code. What reads and writes one place in one turn may be given twice."""

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()


class Kernel:
    """A body on arrays, compiled on first use and cached on disk.

    Args:
        body: `body(first, last, *args)` works on some of the items; results of an item do not
            depend on which others are worked on with it. Its first argument after these two is
            an array, whose size tells the work.
        fastmath: Which liberties the compiler takes.
    """

    def __init__(self, body: Callable[..., None], fastmath: Iterable[str] = ()) -> None:
        options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
        options |= {"fastmath": set(fastmath) or False, "no_cpython_wrapper": True}
        self.body = njit(**options, pipeline_class=_Unshared)(body)
        self._bodies = np.zeros(3, np.int64)
        self._run = _runner(len(inspect.signature(body).parameters) - 2)

    def __call__(self, items: int, *args: Any) -> None:
        """Works on all items, in several threads if the first array is large."""
        workers = threads.count() if args[0].size >= PARALLEL_FROM else 0
        if not self._run(self._bodies, items, workers, *args):
            self._compile(args)
            self(items, *args)

    def share(self, workers: int, items: int, *args: Any) -> None:
        """Works on all items with so many threads; 0 is for work that is too little for pieces."""
        if not self._run(self._bodies, items, workers, *args):
            self._compile(args)
            self.share(workers, items, *args)

    def _compile(self, args: tuple[Any, ...]) -> None:
        start = time.perf_counter()
        kinds = tuple(numba.typeof(a) for a in args)
        known = self._bodies[2:-1]
        share_out = _address(team.way_to_share(), _TEAM)
        body = _address(self.body, (types.int64, types.int64, *kinds))
        numbers = [share_out, team.STATE, *known, _number_of(kinds), body, 0]
        self._bodies = np.array(numbers, np.int64)
        note_compilation(time.perf_counter() - start)


def kernel(*, fastmath: Iterable[str] = ()) -> Callable[[Callable[..., None]], Kernel]:
    """Decorator for the body of a Kernel."""
    return lambda body: Kernel(body, fastmath)


def inlined(body: Callable[..., Any]) -> Any:
    """Decorator for a function that becomes a piece of each body that calls it.

    Compiled on its own it would be optimised once more for every level of calls.
    """
    return njit(inline="always", error_model="numpy")(body)
