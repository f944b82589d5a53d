"""Chains of elementwise steps as one pass over memory, compiled while the program runs.

A chain is given as data: which arrays it reads, its steps, and which of them are results. It is
written as LLVM instructions, several numbers side by side, and compiled in some milliseconds; a
body for numba would take a hundred times as long. The team of threads gets it by its address, as a
piece of the kernel below.

Sums of a chain are added in the order of NumPy's pairwise sums: leaves of up to 128 numbers, in
each of which eight sums run side by side, and the leaves as a tree. So they have the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from .. import threads
from .chain_code import BLOCK, LANES, STRIP, Plan, Step, Writer, leaves_of
from .kernel import PARALLEL_FROM, kernel
from .team import call_piece

__all__ = ["LANES", "Chain", "Plan", "Step"]


@kernel()
def _call(first, last, words, code):  # type: ignore[no-untyped-def]
    call_piece(code, first, last, np.int64(words.ctypes.data))


class Chain:
    """A compiled plan: gives the results, then the sums, for arrays.

    Args:
        plan: What is computed.
        shape: Of the results.
        sums: Shapes of the sums.
        strides: For each array its strides in bytes; None for one that is contiguous.
    """

    def __init__(
        self,
        plan: Plan,
        shape: tuple[int, ...],
        sums: Sequence[tuple[int, ...]] = (),
        strides: Sequence[tuple[int, ...] | None] = (),
    ) -> None:
        self._strides = list(strides) or [None] * len(plan.inputs)
        self._outs = [(shape, np.dtype(plan.steps[i].kind)) for i in plan.results]
        self._size = int(np.prod(plan.sizes))
        rows = self._size // plan.sizes[-1]
        self._tables: tuple[np.ndarray, ...] = ()
        kinds = [np.dtype(plan.steps[i].kind) for i in plan.sums]
        self._sums = list(zip(sums, kinds, strict=True))
        self._whole = plan.along == "all"
        if plan.sums and plan.along == "columns":
            self._items = -(-plan.sizes[-1] // STRIP)
        elif plan.sums:
            starts, pairs = leaves_of(self._size if self._whole else plan.sizes[-1])
            self._tables = (starts, pairs)
            self._items = len(starts) - 1 if self._whole else rows
        else:
            self._items = rows * -(-plan.sizes[-1] // BLOCK)
        self._engine, self._code = _compiled(plan, repr(plan))

    def __call__(self, *arrays: Any) -> Any:
        """The results and sums, a tuple if there are several."""
        given = [
            a
            if type(a) is np.ndarray and (a.flags.c_contiguous if s is None else a.strides == s)
            else _laid_out(a, s)
            for a, s in zip(arrays, self._strides, strict=True)
        ]
        outs = [np.empty(shape, dtype) for shape, dtype in self._outs]
        count = len(self._tables[0]) - 1 if self._whole else 0
        outs += [np.empty((count,) if self._whole else s, d) for s, d in self._sums]
        words = np.array([id(a) for a in (*given, *outs, *self._tables)], np.int64)
        workers = threads.count() if self._size >= PARALLEL_FROM else 0
        _call.share(workers, self._items, words, self._code)
        if self._whole:
            n = len(self._outs)
            pairs = self._tables[1]
            outs[n:] = [
                _total(a, pairs).reshape(s) for a, (s, _) in zip(outs[n:], self._sums, strict=True)
            ]
        return outs[0] if len(outs) == 1 else tuple(outs)


def _laid_out(a: Any, strides: tuple[int, ...] | None) -> np.ndarray:
    """A copy with these strides."""
    if strides is None:
        return np.asarray(a, order="C")
    size = a.itemsize + sum(s * (n - 1) for s, n in zip(strides, a.shape, strict=True))
    made = np.ndarray(a.shape, a.dtype, bytearray(size), 0, strides)
    made[...] = a
    return made


@kernel()
def _combine(first, last, sums, pairs):  # type: ignore[no-untyped-def]
    for k in range(len(pairs)):
        sums[pairs[k, 0]] += sums[pairs[k, 1]]


def _total(sums: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The sum of the sums of leaves."""
    _combine.share(0, 1, sums, pairs)
    total: np.ndarray = sums[:1] + 0.0  # with which NumPy begins, also where all are -0.0
    return total


# ---- code ----------------------------------------------------------------------------------------


@functools.cache
def _processor() -> tuple[Any, str, bool]:
    """What code is made for, its features, and whether it multiplies and adds at once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    target = llvm.Target.from_default_triple()
    return target, features.flatten(), bool(features.get("fma")) or "x86" not in target.name


@functools.lru_cache(512)
def _compiled(plan: Plan, text: str) -> tuple[Any, int]:
    """What keeps the machine code, and its address; plans of 0.0 and -0.0 differ by `text` only."""
    target, features, fused = _processor()
    module = llvm.parse_assembly(Writer(plan, fused).text())
    # An engine owns its machine and ends it, so that each has one of its own.
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, codemodel="jitdefault"
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine, engine.get_function_address("piece")
