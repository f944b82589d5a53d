"""The threads that kernels share: whoever is awake takes the next piece, and nobody is waited for.

A thread of OpenMP waits at the end of each loop until all others came, also those that the system
has not let run in the meantime; on a machine with other work every kernel then takes milliseconds.
Here the caller publishes its pieces and takes them itself, one after the other; helpers that are
awake take some of them. At the end the caller waits only for pieces that a helper has begun.

All words stand in one array, each in cache lines of its own:

- `TICKET` holds the number of the job and that of its next piece. A piece is taken by raising it
  with compare-and-swap, which fails once the job is another one, so that a helper that comes late
  never touches what is not there any more.
- `DONE` counts finished pieces, `PIECE` … `WORKERS` describe the job, `BUSY` keeps a second caller
  out (it works alone), `STOPPED` ends the helpers, and the w-th word from `ASLEEP` on is 1 while
  helper w sleeps at its semaphore.

Where the system has no such semaphores, numba's `prange` shares out the pieces.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from typing import Any

import numba.extending
import numpy as np
from llvmlite import ir
from numba import njit, prange, types

from .compiler import PIECE_TYPE, Lean
from .stored import stored

# Turns that a helper without work waits, 10 to 20 ns each, before it sleeps. Waking it costs the
# caller a few microseconds; waiting keeps a core from other processes.
_TURNS = 6000
_YIELD_AFTER = 2000  # turns that the caller waits for the last pieces before it lets others run

_LINE = 128  # bytes between two words that are written by different threads
TICKET, DONE, PIECE, GIVEN, ITEMS, PIECES, WORKERS, BUSY, STOPPED, ASLEEP = range(0, 1280, 128)
_BITS = 20
_CLOSED = (1 << _BITS) - 1  # no piece has this number
MOST_HELPERS = 255
SEMAPHORE = ASLEEP + _LINE * MOST_HELPERS  # the first of theirs; sem_t has 32 bytes on Linux

_I64 = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()

_intrinsic: Any = numba.extending.intrinsic
_compiled: Any = njit  # its types do not know all options
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "pipeline_class": Lean}
_N = types.int64


def _word(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, _I64.as_pointer())


@_intrinsic
def _load(typing_context, address):  # type: ignore[no-untyped-def]
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(_word(builder, args[0]), "seq_cst", 8)

    return _N(_N), code


@_intrinsic
def _store(typing_context, address, value):  # type: ignore[no-untyped-def]
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _word(builder, args[0]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(_N, _N), code


@_intrinsic
def _add(typing_context, address, value):  # type: ignore[no-untyped-def]
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.atomic_rmw("add", _word(builder, args[0]), args[1], "seq_cst")

    return _N(_N, _N), code


@_intrinsic
def _swap(typing_context, address, old, new):  # type: ignore[no-untyped-def]
    """Whether the word was `old`, and is `new` now."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _word(builder, args[0])
        found = builder.cmpxchg(place, args[1], args[2], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(_N, _N, _N), code


@_intrinsic
def _pause(typing_context):  # type: ignore[no-untyped-def]
    """Tells the core that this thread waits."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if "x86" in builder.module.triple:
            kind = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            function = builder.module.globals.get(name)
            builder.call(function or ir.Function(builder.module, kind, name), [])
        return context.get_dummy_value()

    return types.void(), code


@_intrinsic
def call_piece(typing_context, piece, first, last, given):  # type: ignore[no-untyped-def]
    """Calls the function at the address `piece` for some items."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        piece, first, last, given = args
        function = builder.inttoptr(piece, PIECE_TYPE.as_pointer())
        builder.call(function, [first, last, builder.inttoptr(given, _BYTES)])
        return context.get_dummy_value()

    return types.void(_N, _N, _N, _N), code


_sem_post = types.ExternalFunction("sem_post", types.int32(_N))
_sem_wait = types.ExternalFunction("sem_wait", types.int32(_N))
_sched_yield = types.ExternalFunction("sched_yield", types.int32())


@stored(**_OPTIONS)
def _take_pieces(state):  # type: ignore[no-untyped-def]
    """Works on pieces of the job until all are taken."""
    while True:
        ticket = _load(state + TICKET)
        i, pieces = ticket & _CLOSED, _load(state + PIECES)
        if i >= pieces:
            return
        piece, given = _load(state + PIECE), _load(state + GIVEN)
        items = _load(state + ITEMS)
        if _swap(state + TICKET, ticket, ticket + 1):
            call_piece(piece, items * i // pieces, items * (i + 1) // pieces, given)
            _add(state + DONE, 1)


@_compiled(**_OPTIONS)
def _wanted(state, helper):  # type: ignore[no-untyped-def]
    """Whether there are pieces, and this helper is one of those that may take them."""
    left = _load(state + TICKET) & _CLOSED < _load(state + PIECES)
    return left and helper < _load(state + WORKERS) - 1


@stored(**_OPTIONS)
def _help(state, helper):  # type: ignore[no-untyped-def]
    """What a helper does all its life."""
    while not _load(state + STOPPED):
        if _wanted(state, helper):
            _take_pieces(state)
        turn = 0
        while turn < _TURNS and not _wanted(state, helper):
            _pause()
            turn += 1
        if turn < _TURNS:
            continue
        _store(state + ASLEEP + _LINE * helper, 1)
        if not _wanted(state, helper) and not _load(state + STOPPED):
            _sem_wait(state + SEMAPHORE + _LINE * helper)
        _store(state + ASLEEP + _LINE * helper, 0)


@stored(no_cpython_wrapper=True, **_OPTIONS)
def share_out(state, piece, given, items, pieces, workers):  # type: ignore[no-untyped-def]
    """Calls `piece` for all items, cut into pieces, with so many threads at most."""
    if workers < 2 or pieces < 2 or not _swap(state + BUSY, 0, 1):
        for i in range(pieces):
            call_piece(piece, items * i // pieces, items * (i + 1) // pieces, given)
        return
    job = (_load(state + TICKET) >> _BITS) + 1 << _BITS
    _store(state + TICKET, job | _CLOSED)
    _store(state + DONE, 0)
    _store(state + PIECE, piece)
    _store(state + GIVEN, given)
    _store(state + ITEMS, items)
    _store(state + PIECES, pieces)
    _store(state + WORKERS, workers)
    _store(state + TICKET, job)
    for helper in range(workers - 1):
        if _load(state + ASLEEP + _LINE * helper):
            _store(state + ASLEEP + _LINE * helper, 0)
            _sem_post(state + SEMAPHORE + _LINE * helper)
    _take_pieces(state)
    turn = 0
    while _load(state + DONE) < pieces:
        turn += 1
        if turn > _YIELD_AFTER:
            _sched_yield()
        else:
            _pause()
    _store(state + BUSY, 0)


@_compiled(cache=True, nogil=True, parallel=True, no_cpython_wrapper=True)
def _share_out_by_numba(state, piece, given, items, pieces, workers):  # type: ignore[no-untyped-def]
    if workers < 2:
        call_piece(piece, 0, items, given)
        return
    for i in prange(pieces):
        call_piece(piece, items * i // pieces, items * (i + 1) // pieces, given)


def _aligned_words(count: int) -> np.ndarray:
    """Zeros from the start of a line on."""
    words = np.zeros(count + _LINE // 8, np.int64)
    return words[-words.ctypes.data % _LINE // 8 :][:count]


_words = _aligned_words((SEMAPHORE + _LINE * MOST_HELPERS) // 8)
STATE: int = _words.ctypes.data
_helpers: list[threading.Thread] = []
# The words of a team, and where they lie: to ask NumPy at each call would take microseconds.
_teams: dict[tuple[bool, int], tuple[np.ndarray, int]] = {}
_lock = threading.Lock()


def _make_semaphores() -> bool:
    """Whether the system has them."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None)
    places = (STATE + SEMAPHORE + _LINE * helper for helper in range(MOST_HELPERS))
    return all(library.sem_init(ctypes.c_void_p(place), 0, 0) == 0 for place in places)


available = _make_semaphores()


def of(workers: int) -> int:
    """So many threads, as the entry of a body takes them (`compiler.py`)."""
    if not workers:
        return 0
    known = _teams.get((available, workers))
    if known is None:
        function = share_out if available else _share_out_by_numba
        kinds = (_N,) * 6
        function.compile(kinds)
        code = function.overloads[kinds]
        address = code.library.get_pointer_to_function(code.fndesc.llvm_cfunc_wrapper_name)
        words = np.array([address, STATE, workers])
        # Of threads that come here at once all take the words of one, which stay.
        known = _teams.setdefault((available, workers), (words, words.ctypes.data))
    return known[1]


def start(helpers: int) -> None:
    """Sees to it that there are so many helpers at least."""
    if len(_helpers) >= helpers or not available:
        return
    with _lock:
        _help.compile((types.int64, types.int64))
        for number in range(len(_helpers), min(helpers, MOST_HELPERS)):
            name = f"minitorch-kernels-{number + 1}"
            helper = threading.Thread(target=_help, args=(STATE, number), name=name, daemon=True)
            helper.start()
            _helpers.append(helper)


def stop() -> None:
    """Ends the helpers before the code that they run is gone; they can be started again."""
    with _lock:
        _words[STOPPED // 8] = 1
        for number, helper in enumerate(_helpers):
            ctypes.CDLL(None).sem_post(ctypes.c_void_p(STATE + SEMAPHORE + _LINE * number))
            helper.join()
        _helpers.clear()
        _words[STOPPED // 8] = 0


def _after_fork() -> None:
    """The helpers did not come along; what the words say is about the parent's."""
    global _lock
    _lock = threading.Lock()
    _helpers.clear()
    _words[:] = 0
    _make_semaphores()


atexit.register(stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
