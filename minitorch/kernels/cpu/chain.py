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
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from .. import threads
from .kernel import PARALLEL_FROM, kernel
from .lanes import Lanes, Number
from .team import PIECE_TYPE, call_piece

_BLOCK = 4096  # numbers of a row that are worked on at once
_LANES = 8
_LEAF = 128  # numbers that NumPy adds without splitting them
_MOST_LEAVES = 1024  # of one row
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
# Where an array object holds the address of its numbers: after what every object begins with.
_DATA = object.__basicsize__


@kernel()
def _call(first, last, words, code):  # type: ignore[no-untyped-def]
    call_piece(code, first, last, np.int64(words.ctypes.data))


@dataclass(frozen=True)
class Step:
    """One value of a chain.

    Attributes:
        op: "input", "constant", or a step of `lanes.py`.
        args: Numbers of the steps that it takes.
        kind: Type character of the result.
        value: Of an input the number of the array, of a constant its value.
    """

    op: str
    args: tuple[int, ...]
    kind: str
    value: Any = None


@dataclass(frozen=True)
class Plan:
    """What a chain computes.

    Attributes:
        sizes: Of the axes that are passed over; the last one is the innermost loop.
        inputs: For each array its type character, and whether it has each axis.
        steps: Its values, each after those that it takes.
        results: Numbers of the steps that are stored for each element.
        sums: Numbers of the steps whose sums along the last axis are stored.
        whole: They are summed along all axes.
    """

    sizes: tuple[int, ...]
    inputs: tuple[tuple[str, tuple[bool, ...]], ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    sums: tuple[int, ...] = ()
    whole: bool = False


def leaves_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the leaves of a pairwise sum of n numbers begin and end, and which sums are added to
    which, in order."""
    starts, pairs = [0], []

    def split(first: int, last: int) -> int:
        size = last - first
        if size <= _LEAF:
            starts.append(last)
            return len(starts) - 2
        middle = first + size // 2 // 8 * 8
        left, right = split(first, middle), split(middle, last)
        pairs.append((left, right))
        return left

    split(0, n)
    return np.array(starts, np.int64), np.array(pairs, np.int64).reshape(-1, 2)


class Chain:
    """A compiled plan: gives the results, then the sums, for contiguous arrays."""

    def __init__(
        self, plan: Plan, shape: tuple[int, ...], sums: Sequence[tuple[int, ...]] = ()
    ) -> None:
        """
        Args:
            plan: What is computed.
            shape: Of the results.
            sums: Shapes of the sums.
        """
        self._outs = [(shape, np.dtype(plan.steps[i].kind)) for i in plan.results]
        self._size = int(np.prod(plan.sizes))
        rows = self._size // plan.sizes[-1]
        self._tables: tuple[np.ndarray, ...] = ()
        self._whole = plan.whole
        if plan.sums:
            starts, pairs = leaves_of(self._size if plan.whole else plan.sizes[-1])
            self._tables = (starts, pairs)
            kinds = [np.dtype(plan.steps[i].kind) for i in plan.sums]
            self._sums = list(zip(sums, kinds, strict=True))
            self._items = len(starts) - 1 if self._whole else rows
        else:
            self._sums = []
            self._items = rows * -(-plan.sizes[-1] // _BLOCK)
        self._engine, self._code = _compiled(plan)

    def __call__(self, *arrays: Any) -> Any:
        """The results and sums, a tuple if there are several."""
        given = [
            a if type(a) is np.ndarray and a.flags.c_contiguous else np.asarray(a, order="C")
            for a in arrays
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


@kernel()
def _combine(first, last, sums, pairs):  # type: ignore[no-untyped-def]
    for k in range(len(pairs)):
        sums[pairs[k, 0]] += sums[pairs[k, 1]]


def _total(sums: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The sum of the sums of leaves."""
    _combine.share(0, 1, sums, pairs)
    return sums[:1].copy()


# ---- code ----------------------------------------------------------------------------------------


@functools.cache
def _machine() -> tuple[Any, bool]:
    """The processor that code is made for, and whether it multiplies and adds at once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=3, codemodel="jitdefault"
    )
    return machine, bool(features.get("fma")) or "x86" not in target.name


@functools.lru_cache(512)
def _compiled(plan: Plan) -> tuple[Any, int]:
    """What keeps the machine code, and its address."""
    machine, fused = _machine()
    module = llvm.parse_assembly(_Writer(plan, fused).text())
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine, engine.get_function_address("piece")


class _Writer:
    """Writes the instructions of a plan.

    Args:
        plan: What is computed.
        fused: The processor multiplies and adds in one step.
    """

    def __init__(self, plan: Plan, fused: bool) -> None:
        self.plan, self._fused = plan, fused
        self._module = ir.Module("chain")
        self._function = ir.Function(self._module, PIECE_TYPE, "piece")
        self._builder = ir.IRBuilder(self._function.append_basic_block("entry"))
        self._varying = self._which_vary()

    def _which_vary(self) -> list[bool]:
        """For each step, whether its value differs along the last axis."""
        found: list[bool] = []
        for step in self.plan.steps:
            if step.op == "input":
                found.append(self.plan.inputs[step.value][1][-1])
            else:
                found.append(any(found[i] for i in step.args))
        return found

    def text(self) -> str:
        """The module."""
        plan, b = self.plan, self._builder
        first, last, words = self._function.args
        kinds = [kind for kind, _ in plan.inputs]
        kinds += [plan.steps[i].kind for i in (*plan.results, *plan.sums)]
        kinds += ["l"] * 2 * bool(plan.sums)
        pointers = [self._numbers_of(words, i, kind) for i, kind in enumerate(kinds)]
        n = len(plan.inputs)
        self._inputs, self._results = pointers[:n], pointers[n : n + len(plan.results)]
        self._sums = pointers[n + len(plan.results) :][: len(plan.sums)]
        self._table, self._pairs = pointers[-2:]
        with self._loop(first, last, 1) as item:
            if plan.whole:
                self._leaf_of_all(item)
            elif plan.sums:
                self._row_of_sums(item)
            else:
                self._block(item)
        b.ret_void()
        return str(self._module)

    def _numbers_of(self, words: Any, i: int, kind: str) -> Any:
        """The first number of array i."""
        b = self._builder
        addresses = b.bitcast(words, _I64.as_pointer())
        held = b.add(b.load(b.gep(addresses, [_I64(i)])), _I64(_DATA))
        start = b.load(b.inttoptr(held, _I64.as_pointer()))
        scalar = _I8 if kind == "?" else Lanes(b, 1, False).type_of(kind)
        return b.inttoptr(start, scalar.as_pointer())

    def _loop(self, first: Any, last: Any, step: int) -> _Loop:
        return _Loop(self._builder, first, last, step)

    # ---- what an item is -------------------------------------------------------------------------

    def _block(self, item: Any) -> None:
        """Part of a row."""
        b, n = self._builder, self.plan.sizes[-1]
        blocks = -(-n // _BLOCK)
        row = item if blocks == 1 else b.sdiv(item, _I64(blocks))
        start: Any = _I64(0)
        if blocks > 1:
            start = b.mul(b.srem(item, _I64(blocks)), _I64(_BLOCK))
        stop = b.add(start, _I64(min(n, _BLOCK)))
        if n % _BLOCK and blocks > 1:
            stop = b.select(b.icmp_signed("<", stop, _I64(n)), stop, _I64(n))
        self._enter_row(row)
        self._pass(start, stop)

    def _leaf_of_all(self, item: Any) -> None:
        """A leaf of the sums of everything."""
        for target, total in zip(self._sums, self._leaf(item), strict=True):
            self._builder.store(total, self._builder.gep(target, [item]))

    def _row_of_sums(self, row: Any) -> None:
        """A row with its sums."""
        b, plan = self._builder, self.plan
        starts, pairs = leaves_of(plan.sizes[-1])
        count = len(starts) - 1
        self._enter_row(row)
        if count == 1:
            totals = self._leaf(_I64(0))
        else:
            rooms = []
            for i in plan.sums:
                with b.goto_entry_block():
                    kind = Lanes(b, 1, False).type_of(plan.steps[i].kind)
                    rooms.append(b.alloca(kind, count))
            with self._loop(_I64(0), _I64(count), 1) as leaf:
                for room, total in zip(rooms, self._leaf(leaf), strict=True):
                    b.store(total, b.gep(room, [leaf]))
            with self._loop(_I64(0), _I64(2 * len(pairs)), 2) as k:
                into, other = (
                    b.load(b.gep(self._pairs, [b.add(k, _I64(side))])) for side in (0, 1)
                )
                for room in rooms:
                    place = b.gep(room, [into])
                    b.store(b.fadd(b.load(place), b.load(b.gep(room, [other]))), place)
            totals = [b.load(room) for room in rooms]
        for target, total in zip(self._sums, totals, strict=True):
            b.store(total, b.gep(target, [row]))

    # ---- loops -----------------------------------------------------------------------------------

    def _enter_row(self, row: Any) -> None:
        """Finds where a row of each array begins, and computes what is the same along it."""
        b, plan = self._builder, self.plan
        places = []
        for size in reversed(plan.sizes[1:-1]):
            places.append(b.srem(row, _I64(size)))
            row = b.sdiv(row, _I64(size))
        places = [row, *reversed(places)] if len(plan.sizes) > 1 else []
        self._starts = [
            b.gep(pointer, [self._offset(present, places)])
            for pointer, (_, present) in zip(self._inputs, plan.inputs, strict=True)
        ]
        everywhere = (True,) * len(plan.sizes)
        self._ends = [b.gep(p, [self._offset(everywhere, places)]) for p in self._results]
        self._uniform = self._values(Lanes(b, 1, self._fused), None, {})

    def _offset(self, present: tuple[bool, ...], places: list[Any]) -> Any:
        """How many numbers lie before a row of an array that has these axes."""
        b, sizes = self._builder, self.plan.sizes
        offset: Any = _I64(0)
        stride = sizes[-1] if present[-1] else 1
        for axis in reversed(range(len(places))):
            if present[axis]:
                offset = b.add(offset, b.mul(places[axis], _I64(stride)))
                stride *= sizes[axis]
        return offset

    def _values(self, lanes: Lanes, j: Any, known: dict[int, Number]) -> dict[int, Number]:
        """The steps' values at place j of the row; with None those that are the same in it."""
        found: dict[int, Number] = {}

        def value(i: int) -> Number:
            if i in found:
                return found[i]
            x = known[i]
            found[i] = x if lanes.count == 1 else lanes.spread(x.kind, x.value)
            return found[i]

        for i, step in enumerate(self.plan.steps):
            if self._varying[i] is (j is None):
                continue
            if step.op == "input":
                found[i] = self._read(lanes, self._starts[step.value], step.kind, j)
            elif step.op == "constant":
                found[i] = lanes.constant(step.value, step.kind)
            else:
                found[i] = lanes.step(step.op, [value(a) for a in step.args], step.kind)
        return found

    def _pass(self, start: Any, stop: Any) -> None:
        """Computes and stores the results of part of a row."""
        b = self._builder
        wide, one = Lanes(b, _LANES, self._fused), Lanes(b, 1, self._fused)
        middle = b.add(start, b.and_(b.sub(stop, start), _I64(-_LANES)))
        with self._loop(start, middle, _LANES) as j:
            self._write(self._values(wide, j, self._uniform), j, wide)
        if self.plan.sizes[-1] % _LANES:
            with self._loop(middle, stop, 1) as j:
                self._write(self._values(one, j, self._uniform), j, one)

    def _leaf(self, leaf: Any) -> list[Any]:
        """Stores the results of a leaf; its sums."""
        b, plan = self._builder, self.plan
        start, stop = (b.load(b.gep(self._table, [b.add(leaf, _I64(k))])) for k in (0, 1))
        wide, one = Lanes(b, _LANES, self._fused), Lanes(b, 1, self._fused)
        kinds = [plan.steps[i].kind for i in plan.sums]
        middle = b.add(start, b.and_(b.sub(stop, start), _I64(-_LANES)))
        with b.goto_entry_block():
            rooms = [b.alloca(wide.type_of(kind)) for kind in kinds]
            totals = [b.alloca(one.type_of(kind)) for kind in kinds]
        for room, kind in zip(rooms, kinds, strict=True):
            b.store(wide.constant(-0.0, kind).value, room)

        def add(start: Any, stop: Any, lanes: Lanes, into: list[Any]) -> None:
            with self._loop(start, stop, lanes.count) as j:
                values = self._values(lanes, j, self._uniform)
                self._write(values, j, lanes)
                for room, i in zip(into, plan.sums, strict=True):
                    x = self._summand(values, i, lanes)
                    b.store(b.fadd(b.load(room), x.value), room)

        if plan.whole and len(plan.sizes) > 1:  # rows are a multiple of the lanes
            n = _I64(plan.sizes[-1])
            after = b.sdiv(b.sub(b.add(stop, n), _I64(1)), n)
            with self._loop(b.sdiv(start, n), after, 1) as row:
                self._enter_row(row)
                left = b.mul(row, n)
                low, high = b.sub(start, left), b.sub(stop, left)
                low = b.select(b.icmp_signed("<", low, _I64(0)), _I64(0), low)
                add(low, b.select(b.icmp_signed("<", n, high), n, high), wide, rooms)
        else:
            if plan.whole:
                self._enter_row(_I64(0))
            add(start, middle, wide, rooms)
        for room, total in zip(rooms, totals, strict=True):
            b.store(self._folded(b.load(room)), total)
        if plan.sizes[-1] % _LANES:
            add(middle, stop, one, totals)
        return [b.load(total) for total in totals]

    def _summand(self, values: dict[int, Number], i: int, lanes: Lanes) -> Number:
        if i in values:
            return values[i]
        return lanes.spread(self._uniform[i].kind, self._uniform[i].value)

    def _folded(self, vector: Any) -> Any:
        """((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))."""
        b = self._builder
        parts = [b.extract_element(vector, _I32(i)) for i in range(_LANES)]
        while len(parts) > 1:
            parts = [b.fadd(*parts[i : i + 2]) for i in range(0, len(parts), 2)]
        return parts[0]

    # ---- memory ----------------------------------------------------------------------------------

    def _read(self, lanes: Lanes, start: Any, kind: str, j: Any) -> Number:
        b = self._builder
        place = start if j is None else b.gep(start, [j])
        scalar = place.type.pointee
        if lanes.count > 1:
            place = b.bitcast(place, ir.VectorType(scalar, lanes.count).as_pointer())
        loaded = b.load(place)
        loaded.align = 1 if kind == "?" else 4 if kind in "fi" else 8
        if kind != "?":
            return Number(lanes, kind, loaded)
        zero = ir.Constant(loaded.type, [0] * lanes.count if lanes.count > 1 else 0)
        return Number(lanes, kind, b.icmp_unsigned("!=", loaded, zero))

    def _write(self, values: dict[int, Number], j: Any, lanes: Lanes) -> None:
        b = self._builder
        for start, i in zip(self._ends, self.plan.results, strict=True):
            x = self._summand(values, i, lanes)
            value, kind = x.value, x.kind
            if kind == "?":
                held = _I8 if lanes.count == 1 else ir.VectorType(_I8, lanes.count)
                value = b.zext(value, held)
            place = b.bitcast(b.gep(start, [j]), value.type.as_pointer())
            b.store(value, place).align = 1 if kind == "?" else 4 if kind in "fi" else 8


class _Loop:
    """A loop around the instructions made while it is entered; gives its counter."""

    def __init__(self, builder: Any, first: Any, last: Any, step: int) -> None:
        self._b, self._first, self._last, self._step = builder, first, last, step

    def __enter__(self) -> Any:
        b = self._b
        before = b.block
        self._head, body = b.append_basic_block("head"), b.append_basic_block("body")
        self._after = b.append_basic_block("after")
        b.branch(self._head)
        b.position_at_end(self._head)
        self._counter = b.phi(_I64)
        self._counter.add_incoming(self._first, before)
        b.cbranch(b.icmp_signed("<", self._counter, self._last), body, self._after)
        b.position_at_end(body)
        return self._counter

    def __exit__(self, *error: Any) -> None:
        b = self._b
        self._counter.add_incoming(b.add(self._counter, _I64(self._step)), b.block)
        b.branch(self._head)
        b.position_at_end(self._after)
