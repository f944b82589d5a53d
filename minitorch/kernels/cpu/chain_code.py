"""The instructions of a chain of elementwise steps: what its plan says, as loops over memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir

from .lanes import Lanes, Number
from .team import PIECE_TYPE

BLOCK = 4096  # numbers of a row that are worked on at once
STRIP = 1024  # columns that are summed at once: narrow strips of long rows are slow to reach
LANES = 8
_LEAF = 128  # numbers that NumPy adds without splitting them
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
# Where an array object holds the address of its numbers: after what every object begins with.
_DATA = object.__basicsize__


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
        inputs: For each array its type character, and how many numbers lie between neighbours along
            each axis: 0 where it has none, 0 or 1 along the last one.
        steps: Its values, each after those that it takes.
        results: Numbers of the steps that are stored for each element.
        sums: Numbers of the steps whose sums are stored.
        along: What is summed: "rows", each to one number; "all"; or "columns" of the last axis.
    """

    sizes: tuple[int, ...]
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    sums: tuple[int, ...] = ()
    along: str = "rows"


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


def _bytes(kind: str) -> int:
    return 1 if kind == "?" else 4 if kind in "fi" else 8


class Writer:
    """Writes the instructions of a plan.

    Args:
        plan: What is computed.
        fused: The processor multiplies and adds in one step.
    """

    def __init__(self, plan: Plan, fused: bool) -> None:
        self.plan = plan
        self._module = ir.Module("chain")
        self._function = ir.Function(self._module, PIECE_TYPE, "piece")
        self._builder = ir.IRBuilder(self._function.append_basic_block("entry"))
        self._wide, self._one = (Lanes(self._builder, n, fused) for n in (LANES, 1))
        self._varying = self._which_vary()
        self._rows = int(np.prod(plan.sizes[:-1], dtype=np.int64))

    def _which_vary(self) -> list[bool]:
        """For each step, whether its value differs along the last axis."""
        found: list[bool] = []
        for step in self.plan.steps:
            if step.op == "input":
                found.append(self.plan.inputs[step.value][1][-1] != 0)
            else:
                found.append(any(found[i] for i in step.args))
        return found

    def text(self) -> str:
        """The module."""
        plan, b = self.plan, self._builder
        first, last, words = self._function.args
        kinds = [kind for kind, _ in plan.inputs]
        kinds += [plan.steps[i].kind for i in (*plan.results, *plan.sums)]
        kinds += ["l"] * 2 * bool(plan.sums and plan.along != "columns")
        pointers = [self._numbers_of(words, i, kind) for i, kind in enumerate(kinds)]
        n = len(plan.inputs)
        self._inputs, self._results = pointers[:n], pointers[n : n + len(plan.results)]
        self._sums = pointers[n + len(plan.results) :][: len(plan.sums)]
        tables: list[Any] = pointers[-2:] if kinds[-2:] == ["l"] * 2 else [None, None]
        self._table, self._pairs = tables
        with self._loop(first, last, 1) as item:
            if plan.sums and plan.along == "columns":
                self._strip(item)
            elif plan.along == "all":
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
        scalar = _I8 if kind == "?" else self._one.type_of(kind)
        return b.inttoptr(start, scalar.as_pointer())

    def _middle(self, start: Any, stop: Any) -> Any:
        """Where the whole vectors between two places end."""
        b = self._builder
        return b.add(start, b.and_(b.sub(stop, start), _I64(-LANES)))

    def _loop(self, first: Any, last: Any, step: int, values: Sequence[Any] = ()) -> _Loop:
        return _Loop(self._builder, first, last, step, values)

    # ---- what an item is -------------------------------------------------------------------------

    def _block(self, item: Any) -> None:
        """Part of a row."""
        b, n = self._builder, self.plan.sizes[-1]
        blocks = -(-n // BLOCK)
        row = item if blocks == 1 else b.sdiv(item, _I64(blocks))
        start: Any = _I64(0)
        if blocks > 1:
            start = b.mul(b.srem(item, _I64(blocks)), _I64(BLOCK))
        stop = b.add(start, _I64(min(n, BLOCK)))
        if n % BLOCK and blocks > 1:
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
                    kind = self._one.type_of(plan.steps[i].kind)
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
            zero = ir.Constant(total.type, 0.0)  # with which NumPy begins, also where all are -0.0
            b.store(b.fadd(total, zero), b.gep(target, [row]))

    def _strip(self, item: Any) -> None:
        """Some columns with their sums: row after row, as NumPy adds them."""
        b, plan = self._builder, self.plan
        n = plan.sizes[-1]
        start = b.mul(item, _I64(STRIP))
        stop = b.add(start, _I64(STRIP))
        stop = b.select(b.icmp_signed("<", stop, _I64(n)), stop, _I64(n))
        middle = self._middle(start, stop)
        kinds = [plan.steps[i].kind for i in plan.sums]
        with b.goto_entry_block():
            rooms = [b.alloca(self._one.type_of(kind), STRIP) for kind in kinds]
        for room, kind in zip(rooms, kinds, strict=True):
            with self._loop(_I64(0), _I64(STRIP), 1) as j:
                b.store(self._one.constant(0.0, kind).value, b.gep(room, [j]))

        def add(low: Any, high: Any, lanes: Lanes) -> None:
            with self._loop(low, high, lanes.count) as j:
                values = self._values(lanes, j)
                self._write(values, j, lanes)
                for room, i in zip(rooms, plan.sums, strict=True):
                    x = self._value(values, i, lanes).value
                    place = b.gep(room, [b.sub(j, start)])
                    place = b.bitcast(place, x.type.as_pointer())
                    total = b.load(place)
                    total.align = 4
                    b.store(b.fadd(total, x), place).align = 4

        with self._loop(_I64(0), _I64(self._rows), 1) as row:
            self._enter_row(row)
            add(start, middle, self._wide)
            if n % LANES:
                add(middle, stop, self._one)
        with self._loop(start, stop, 1) as j:
            for room, target in zip(rooms, self._sums, strict=True):
                b.store(b.load(b.gep(room, [b.sub(j, start)])), b.gep(target, [j]))

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
            b.gep(pointer, [self._offset(strides, places)])
            for pointer, (_, strides) in zip(self._inputs, plan.inputs, strict=True)
        ]
        whole = [int(np.prod(plan.sizes[i + 1 :])) for i in range(len(plan.sizes))]
        self._ends = [b.gep(p, [self._offset(whole, places)]) for p in self._results]
        self._uniform = self._values(self._one, None)

    def _offset(self, strides: Sequence[int], places: list[Any]) -> Any:
        """How many numbers lie before a row of an array."""
        b = self._builder
        offset: Any = _I64(0)
        for stride, place in zip(strides, places, strict=False):
            if stride:
                offset = b.add(offset, b.mul(place, _I64(stride)))
        return offset

    def _values(self, lanes: Lanes, j: Any) -> dict[int, Number]:
        """The steps' values at place j of the row; with None those that are the same in it."""
        found: dict[int, Number] = {}

        for i, step in enumerate(self.plan.steps):
            if self._varying[i] is (j is None):
                continue
            if step.op == "input":
                found[i] = self._read(lanes, self._starts[step.value], step.kind, j)
            elif step.op == "constant":
                found[i] = lanes.constant(step.value, step.kind)
            else:
                found[i] = lanes.step(
                    step.op, [self._value(found, a, lanes) for a in step.args], step.kind
                )
        return found

    def _pass(self, start: Any, stop: Any) -> None:
        """Computes and stores the results of part of a row."""
        middle = self._middle(start, stop)
        with self._loop(start, middle, LANES) as j:
            self._write(self._values(self._wide, j), j, self._wide)
        if self.plan.sizes[-1] % LANES:
            with self._loop(middle, stop, 1) as j:
                self._write(self._values(self._one, j), j, self._one)

    def _leaf(self, leaf: Any) -> list[Any]:
        """Stores the results of a leaf; its sums."""
        b, plan = self._builder, self.plan
        start, stop = (b.load(b.gep(self._table, [b.add(leaf, _I64(k))])) for k in (0, 1))
        kinds = [plan.steps[i].kind for i in plan.sums]
        middle = self._middle(start, stop)
        totals = [self._wide.constant(-0.0, kind).value for kind in kinds]

        def add(low: Any, high: Any, lanes: Lanes, totals: list[Any]) -> list[Any]:
            loop = self._loop(low, high, lanes.count, totals)
            with loop as j:
                values = self._values(lanes, j)
                self._write(values, j, lanes)
                more = [self._value(values, i, lanes).value for i in plan.sums]
                pairs = zip(loop.values, more, strict=True)
                loop.next = [b.fadd(total, x) for total, x in pairs]
            return loop.values

        if plan.along == "all" and len(plan.sizes) > 1:  # rows are a multiple of the lanes
            n = _I64(plan.sizes[-1])
            after = b.sdiv(b.sub(b.add(stop, n), _I64(1)), n)
            rows = self._loop(b.sdiv(start, n), after, 1, totals)
            with rows as row:
                self._enter_row(row)
                left = b.mul(row, n)
                low, high = b.sub(start, left), b.sub(stop, left)
                low = b.select(b.icmp_signed("<", low, _I64(0)), _I64(0), low)
                high = b.select(b.icmp_signed("<", n, high), n, high)
                rows.next = add(low, high, self._wide, rows.values)
            totals = rows.values
        else:
            if plan.along == "all":
                self._enter_row(_I64(0))
            totals = add(start, middle, self._wide, totals)
        totals = [self._folded(total) for total in totals]
        return add(middle, stop, self._one, totals) if plan.sizes[-1] % LANES else totals

    def _value(self, values: dict[int, Number], i: int, lanes: Lanes) -> Number:
        """That of step i; what is the same along the row is put in each lane."""
        if i not in values:
            x = self._uniform[i]
            values[i] = lanes.spread(x.kind, x.value)
        return values[i]

    def _folded(self, vector: Any) -> Any:
        """((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))."""
        b = self._builder
        parts = [b.extract_element(vector, _I32(i)) for i in range(LANES)]
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
        loaded.align = _bytes(kind)
        if kind != "?":
            return Number(lanes, kind, loaded)
        zero = ir.Constant(loaded.type, [0] * lanes.count if lanes.count > 1 else 0)
        return Number(lanes, kind, b.icmp_unsigned("!=", loaded, zero))

    def _write(self, values: dict[int, Number], j: Any, lanes: Lanes) -> None:
        b = self._builder
        for start, i in zip(self._ends, self.plan.results, strict=True):
            x = self._value(values, i, lanes)
            value, kind = x.value, x.kind
            if kind == "?":
                held = _I8 if lanes.count == 1 else ir.VectorType(_I8, lanes.count)
                value = b.zext(value, held)
            place = b.bitcast(b.gep(start, [j]), value.type.as_pointer())
            b.store(value, place).align = _bytes(kind)


class _Loop:
    """A loop around the instructions made while it is entered; gives its counter.

    Attributes:
        values: Those that it carries from one turn to the next; after it, those of the end.
        next: What becomes of them in a turn.
    """

    def __init__(self, builder: Any, first: Any, last: Any, step: int, values: Any) -> None:
        self._b, self._first, self._last, self._step = builder, first, last, step
        self._given = list(values)

    def __enter__(self) -> Any:
        b = self._b
        before = b.block
        self._head, body = b.append_basic_block("head"), b.append_basic_block("body")
        self._after = b.append_basic_block("after")
        b.branch(self._head)
        b.position_at_end(self._head)
        self._counter = b.phi(_I64)
        self._counter.add_incoming(self._first, before)
        self.values = [b.phi(value.type) for value in self._given]
        for phi, value in zip(self.values, self._given, strict=True):
            phi.add_incoming(value, before)
        self.next = self.values
        b.cbranch(b.icmp_signed("<", self._counter, self._last), body, self._after)
        b.position_at_end(body)
        return self._counter

    def __exit__(self, *error: Any) -> None:
        b = self._b
        self._counter.add_incoming(b.add(self._counter, _I64(self._step)), b.block)
        for phi, value in zip(self.values, self.next, strict=True):
            phi.add_incoming(value, b.block)
        b.branch(self._head)
        b.position_at_end(self._after)
