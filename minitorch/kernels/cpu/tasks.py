"""Sharing out tasks that are compiled apart from the loop over them.

A body with `prange` is optimised again at each of the levels that numba wraps around it, which
takes ten seconds and more for a long one. Here one small loop calls a compiled function by its
address; the function is compiled once and finds its arrays behind a list of addresses and sizes.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, get_num_threads, njit, prange, set_num_threads, types

from .compile import NOTED_SECONDS, inlined, intrinsic, note_compilation

_INT = ir.IntType(64)
_SIGNATURE = types.void(types.int64, types.voidptr)


@intrinsic
def _call(context, address, task, given):  # type: ignore[no-untyped-def]
    """Calls the function at `address` with a task and the address of a list of numbers."""
    signature = types.void(types.int64, types.int64, given)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [_INT, pointer]).as_pointer()
        data = context.make_array(signature.args[2])(context, builder, args[2]).data
        function = builder.inttoptr(args[0], kind)
        builder.call(function, [args[1], builder.bitcast(data, pointer)])
        return context.get_dummy_value()

    return signature, code


@intrinsic
def _pointer(context, address):  # type: ignore[no-untyped-def]
    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), code


@njit(cache=True, nogil=True, parallel=True)
def _for_each(address, tasks, given):  # type: ignore[no-untyped-def]
    for task in prange(tasks):
        _call(address, task, given)


@inlined
def array(given, i, dtype):  # type: ignore[no-untyped-def]
    """The i-th array that a task was given, flat."""
    numbers = carray(given, 2 * i + 2, np.int64)
    return carray(_pointer(numbers[2 * i]), numbers[2 * i + 1], dtype)


class Task:
    """A function `body(task, given)`, compiled when it is first shared out; decorator.

    It gets its arrays by `array(given, i, dtype)`.
    """

    def __init__(self, body: Callable[[int, Any], None]) -> None:
        self.body = body

    @functools.cached_property
    def compiled(self) -> Any:
        """The machine code, from disk where it is there."""
        start = time.perf_counter()
        function = cfunc(_SIGNATURE, cache=True, error_model="numpy")(self.body)
        if time.perf_counter() - start > NOTED_SECONDS:
            note_compilation(time.perf_counter() - start)
        return function


def share_out(function: Task, tasks: int, arrays: Sequence[Any], *, alone: bool) -> None:
    """Calls `function` for each task, in any order and in several threads.

    Args:
        function: What to call.
        tasks: How many there are.
        arrays: What they are given, contiguous.
        alone: Whether the work is too little for a second thread.
    """
    numbers = []
    for a in arrays:
        numbers += [a.ctypes.data, a.size]
    given = np.array(numbers, np.int64)
    if not alone:
        _for_each(function.compiled.address, int(tasks), given)
        return
    threads = get_num_threads()
    set_num_threads(1)
    try:
        _for_each(function.compiled.address, int(tasks), given)
    finally:
        set_num_threads(threads)
