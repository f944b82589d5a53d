"""Elementwise calls of a recording that become kernels: what belongs together, in which order.

Calls of one shape are joined where one takes what another gives, or both read the same array, and
where nothing in between has to happen in the middle. Values that nobody else reads are never in
memory then. Cheap values of fewer elements, and views, are computed again by each kernel that
needs them. A kernel is kept only if it gives what the calls gave while they were recorded.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..autograd.accumulation import grow, sum_to
from ..kernels import load
from ..ops.elementwise import DIV
from ..ops.families import Binary, Comparison, Unary
from ..ops.primitive import Op
from ..ops.reduction import LONG, added_one_by_one, mean_arrays, sum_arrays
from .compare import alike
from .lowering import Lowered, lies_in_rows, plan_of
from .normalised import expression_of_norm, normalised, parts_of_norm
from .program import makes, reads
from .symbols import APPROXIMATE, Expression, Opaque, Symbol, constant, source, symbol, traced
from .tape import Call, Ref, Tape

LEAST = 1 << 14  # elements from which a kernel is quicker than the calls
STEPS = 2  # that a kernel has at least; one alone NumPy passes over memory as well
_ALONE = 1 << 17  # elements from which one step alone is worth a second thread
SMALLER = 8  # times fewer elements: computed again rather than read
_MOST_ARRAYS = 12  # of a kernel
# Whose plain bodies are others than those that run on large arrays.
_OWN_KERNELS = frozenset(("gelu", "gelu_tanh", "erf"))
_PRIMITIVES = frozenset("where clone to expand dropout reshape unsqueeze squeeze sum mean".split())
_OPS = Op.__module__.rpartition(".")[0]


class _Unit:
    """Calls that run as one.

    Attributes:
        calls: Their numbers.
        parts: What each computes, if they can be joined.
        shape: Of the results.
        needs: Slots that they read.
        gives: Slots that they make.
        summed: Those of them that are sums.
    """

    def __init__(self, number: int, call: Call, part: Lowered | None) -> None:
        self.calls = [number]
        self.parts = {} if part is None else {number: part}
        self.shape: tuple[int, ...] = () if part is None else part.shape
        self.needs = set(reads(call)) | (set() if part is None else part.inputs)
        self.gives = set(makes(call))
        self.summed = set(self.gives) if part is not None and part.sums else set()

    def absorb(self, other: _Unit) -> None:
        """Takes the calls of another one."""
        self.calls = sorted(self.calls + other.calls)
        self.parts |= other.parts
        self.gives |= other.gives
        self.needs = (self.needs | other.needs) - self.gives
        self.summed |= other.summed


def fused(tape: Tape, calls: Sequence[Call], keep: Iterable[int]) -> list[Call]:
    """The calls, with kernels in place of those that can be joined.

    Args:
        tape: Where the values come from.
        calls: In order; what is not needed is left out already.
        keep: Slots that are read after the calls.
    """
    if not any(_is_worth(tape, call) for call in calls) or load("chain") is None:
        return list(calls)
    calls = in_parts(tape, calls)
    found: list[Call] = []
    wanted = set(keep)
    ends = [i for i, call in enumerate(calls) if call.kind == "write"]
    starts = [0, *(i + 1 for i in ends)]
    for start, end in zip(starts, [*ends, len(calls)], strict=True):
        later = {slot for call in calls[end:] for slot in reads(call)}
        found += Segment(tape, calls[start:end], wanted | later).fused()
        found += calls[end : end + 1]
    return found


def _is_worth(tape: Tape, call: Call) -> bool:
    """Whether a call alone would be reason enough for a kernel, so that numba is not imported."""
    if not isinstance(call.outs, Ref) or not is_elementwise(call.op):
        return False
    array = tape.array_of(call.outs)
    return getattr(array, "size", 0) >= LEAST and array.dtype.char in "fd"


class _NormsDiffer(Exception):
    """A kernel with a batch_norm in it gives other bits than the one for it alone."""


class Segment:
    """Calls among which nothing changes memory.

    Args:
        tape: Where the values come from.
        calls: The calls, in order.
        keep: Slots that are read after them.
        with_norms: Elementwise calls may be joined with batch_norm.
    """

    def __init__(
        self, tape: Tape, calls: Sequence[Call], keep: set[int], with_norms: bool = True
    ) -> None:
        self.tape, self.calls, self.keep = tape, list(calls), keep
        self._with_norms = with_norms
        self.expressions: dict[int, Expression] = {}
        self.cheap: set[int] = set()

    def fused(self) -> list[Call]:
        """The calls that take their place."""
        units = [_Unit(i, c, self.lowered(c)) for i, c in enumerate(self.calls)]
        if not any(unit.parts for unit in units):
            return self.calls
        self._owner = {slot: unit for unit in units for slot in unit.gives}
        self._ordered(units)
        for unit in list(units):
            if unit.parts:
                self._join_producers(unit)
        units = list(dict.fromkeys(self._place[i] for i in range(len(self.calls))))
        self._join_readers(units)
        units = list(dict.fromkeys(self._place[i] for i in range(len(self.calls))))
        try:
            kernels = self._kernels(units)
        except _NormsDiffer:
            return Segment(self.tape, self.calls, self.keep, with_norms=False).fused()
        out: list[Call] = []
        for unit in self._sorted(units):
            out += kernels.get(id(unit)) or [self.calls[i] for i in unit.calls]
        return out

    def _kernels(self, units: list[_Unit]) -> dict[int, list[Call]]:
        """A call for each unit that becomes a kernel; the others need what their calls read."""
        while True:
            found: dict[int, list[Call]] = {}
            for unit in units:
                if not self._joinable(unit):
                    continue
                made = self._kernels_of(unit)
                if not made:
                    if any(part.has_kernel for part in unit.parts.values()):
                        raise _NormsDiffer
                    unit.parts = {}
                    break
                found[id(unit)] = made
            else:
                return found

    def _kernels_of(self, unit: _Unit) -> list[Call]:
        """One call, or one for each way to pass over the arrays; none if it cannot be."""
        values: dict[int, Lowered] = {}
        for i, part in unit.parts.items():
            (slot,) = makes(self.calls[i])
            values[slot] = part
        ways: dict[Any, list[int]] = {}
        for slot in self._results(unit):
            ways.setdefault(values[slot].sums, []).append(slot)
        plain = ways.pop(None, [])
        if plain:
            first = min(ways, default=None, key=lambda sums: sums[0] == "columns")
            ways[first] = plain + ways.get(first, [])
        made = [kernel_of(self.tape, values, results) for results in ways.values()]
        return [] if None in made else [call for call in made if call is not None]

    # ---- what calls compute ----------------------------------------------------------------------

    def lowered(self, call: Call) -> Lowered | None:
        """What a call computes, or None for what is not elementwise."""
        if call.kind != "pure" or not isinstance(call.outs, Ref) or call.convert == "tensor":
            return None
        out = self.tape.array_of(call.outs)
        if not isinstance(out, np.ndarray | np.generic):
            return None
        try:
            if call.body is sum_arrays:
                return self._lowered_sum(call.args[0], call.kwargs["axes"])
            if call.body is sum_to:
                return self._lowered_sum(call.args[0], _summed_axes(self.tape, *call.args))
            if call.body is normalised and self._with_norms:
                return Lowered(expression_of_norm(call, self._leaf), has_kernel=True)
            if not is_elementwise(call.op) or not out.flags.c_contiguous and 0 not in out.strides:
                return None
            args, kwargs = (self._symbols(x, out.size) for x in (call.args, call.kwargs))
            if isinstance(call.op, Binary) and call.body is call.op.forward:
                args = _same_dtype(args)
            x = traced(call.body, args, kwargs)
        except Opaque:
            return None
        if x.shape != out.shape or np.dtype(x.dtype) != out.dtype:
            return None
        self.expressions[call.outs.slot] = x
        if call.body is not grow:  # which changes what it would be computed from again
            self.cheap.add(call.outs.slot)
        found = Lowered(x)
        return found if found.steps else None  # a view sees what is written later, so it stays one

    def _lowered_sum(self, ref: Ref, axes: tuple[int, ...]) -> Lowered | None:
        """A sum along the first or the last axes."""
        x, array = self._leaf(ref), self.tape.array_of(ref)
        if x.dtype not in "fd":
            return None
        if any(s == 0 < n - 1 for s, n in zip(array.strides, x.shape, strict=True)):
            return None  # NumPy adds the copies of a number one after the other
        axes = tuple(sorted(axes))
        count = math.prod(x.shape[i] for i in axes)
        if count < 2 or added_one_by_one(array, axes) >= LONG:
            return None
        if math.prod(x.shape[axes[0] :]) == count:
            return Lowered(x, ("rows", axes[0]))
        if math.prod(x.shape[: axes[-1] + 1]) == count:
            return Lowered(x, ("columns", axes[-1] + 1))
        return None

    def _symbols(self, value: Any, size: int) -> Any:
        """Arguments with Symbols for values."""
        if isinstance(value, Ref):
            constant = self.tape.constants.get(value.slot)
            if constant is not None and value.slot not in self.tape.fresh and not constant.ndim:
                return constant
            known = self.expressions.get(value.slot)
            if known is None or value.slot not in self.cheap:
                return symbol(self._leaf(value))
            if _work(known) * SMALLER <= size:
                return symbol(known)
            return symbol(self._leaf(value))
        if isinstance(value, tuple | list):
            return type(value)(self._symbols(x, size) for x in value)
        if isinstance(value, dict):
            return {key: self._symbols(x, size) for key, x in value.items()}
        return value

    def _leaf(self, ref: Ref) -> Expression:
        array = self.tape.array_of(ref)
        if not isinstance(array, np.ndarray | np.generic):
            raise Opaque("no array")
        if not array.flags.c_contiguous and not lies_in_rows(array):
            raise Opaque("an array in another order")
        return source(ref.slot, array)

    # ---- what is joined --------------------------------------------------------------------------

    def _ordered(self, units: list[_Unit]) -> None:
        self._place = dict(enumerate(units))
        self._before: dict[int, int] = {}  # draws and checks stay in order
        last = None
        for i, call in enumerate(self.calls):
            if call.kind != "pure":
                if last is not None:
                    self._before[i] = last
                last = i

    def _sources(self, unit: _Unit) -> set[_Unit]:
        """The units that come before one."""
        found = {self._owner[slot] for slot in unit.needs if slot in self._owner}
        found |= {self._place[self._before[i]] for i in unit.calls if i in self._before}
        found.discard(unit)
        return found

    def _leads(self, start: _Unit, end: _Unit, *, directly: bool) -> bool:
        """Whether `end` needs `start`; what it takes of it itself counts only if `directly`."""
        seen: set[int] = set()
        first = min(start.calls)
        waiting = [u for u in self._sources(end) if directly or u is not start]
        while waiting:
            unit = waiting.pop()
            if unit is start:
                return True
            if id(unit) in seen or max(unit.calls) < first:
                continue
            seen.add(id(unit))
            waiting.extend(self._sources(unit))
        return False

    def _join(self, a: _Unit, b: _Unit) -> bool:
        """Joins b to a if that is possible."""
        if a is b or not a.parts or not b.parts or a.shape != b.shape:
            return a is b
        if a.summed & b.needs or b.summed & a.needs:
            return False
        if len([s for s in a.needs | b.needs if self.tape.size_of(s) >= LEAST]) > _MOST_ARRAYS:
            return False
        if self._leads(a, b, directly=False) or self._leads(b, a, directly=False):
            return False
        a.absorb(b)
        for slot in b.gives:
            self._owner[slot] = a
        for number in b.calls:
            self._place[number] = a
        return True

    def _join_producers(self, unit: _Unit) -> None:
        for slot in sorted(unit.needs):
            producer = self._owner.get(slot)
            if producer is not None:
                mine = self._place[unit.calls[0]]
                self._join(producer, mine)

    def _join_readers(self, units: list[_Unit]) -> None:
        """Joins kernels that read the same large array."""
        groups = [unit for unit in units if unit.parts and self._large(unit)]
        for i, b in enumerate(groups):
            for a in groups[:i]:
                a, mine = self._place[a.calls[0]], self._place[b.calls[0]]
                shared = [s for s in a.needs & mine.needs if self.tape.size_of(s) >= LEAST]
                if shared and len(self._arrays(a) | self._arrays(mine)) <= _MOST_ARRAYS:
                    self._join(a, mine)

    def _arrays(self, unit: _Unit) -> set[int]:
        return unit.needs | set(self._results(unit))

    @staticmethod
    def _large(unit: _Unit) -> bool:
        return math.prod(unit.shape) >= LEAST

    def _results(self, unit: _Unit) -> list[int]:
        """The slots that others need."""
        others = {
            slot
            for i, call in enumerate(self.calls)
            if self._place[i] is not unit
            for slot in self._needs_of(i, call)
        }
        return sorted(unit.gives & (others | self.keep))

    def _needs_of(self, i: int, call: Call) -> Iterable[int]:
        part = self._place[i].parts.get(i)
        return reads(call) if part is None or not self._joinable(self._place[i]) else part.inputs

    def _joinable(self, unit: _Unit) -> bool:
        if not self._large(unit) or all(part.has_kernel for part in unit.parts.values()):
            return False
        return self._steps(unit) >= (1 if math.prod(unit.shape) >= _ALONE else STEPS)

    def _steps(self, unit: _Unit) -> int:
        return len({id(x) for part in unit.parts.values() for x in part.steps})

    # ---- what comes out --------------------------------------------------------------------------

    def _sorted(self, units: list[_Unit]) -> list[_Unit]:
        """The units so that each comes after what it needs, otherwise as they were."""
        waiting = {id(u): len(self._sources(u)) for u in units}
        after: dict[int, list[_Unit]] = {}
        for unit in units:
            for other in self._sources(unit):
                after.setdefault(id(other), []).append(unit)
        ready = [(max(u.calls), u) for u in units if not waiting[id(u)]]
        heapq.heapify(ready)
        out: list[_Unit] = []
        while ready:
            unit = heapq.heappop(ready)[1]
            out.append(unit)
            for other in after.get(id(unit), ()):
                waiting[id(other)] -= 1
                if not waiting[id(other)]:
                    heapq.heappush(ready, (max(other.calls), other))
        assert len(out) == len(units), "calls in a circle"
        return out


def in_parts(tape: Tape, calls: Sequence[Call]) -> list[Call]:
    """The calls; those of large means become a sum and a quotient, as their body has them, and
    those of batch_norm what can be joined with other calls and what backward keeps."""
    calls = [one for call in calls for one in parts_of_norm(tape, call, LEAST)]
    return [one for call in calls for one in _without_mean(tape, call)]


def _without_mean(tape: Tape, call: Call) -> list[Call]:
    if call.body is not mean_arrays or not call.kwargs["count"]:
        return [call]
    a, options = tape.array_of(call.args[0]), dict(call.kwargs)
    count = options.pop("count")
    if a.dtype.char not in "fd" or a.size < LEAST:
        return [call]
    total = tape.bind(np.asarray(sum_arrays(a, **options)))
    return [
        Call(sum_arrays, call.args, options, total, convert="array", op=call.op),
        Call(np.true_divide, (total, a.dtype.type(count)), {}, call.outs, convert="array", op=DIV),
    ]


def _same_dtype(args: Sequence[Any]) -> list[Any]:
    """Two operands; a number takes the dtype of the other one, as beside an array."""
    dtype = next(x.dtype for x in args if isinstance(x, Symbol))
    return [symbol(constant(x, dtype)) if type(x) in (int, float) else x for x in args]


def _summed_axes(tape: Tape, ref: Ref, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that `sum_to` sums."""
    given = tape.array_of(ref).shape
    extra = len(given) - len(shape)
    return tuple(i for i, n in enumerate(given) if i < extra or (n != 1 and shape[i - extra] == 1))


def is_elementwise(op: Any) -> bool:
    """Whether bodies and rules of an operation may be (sums are where rules spread gradients)."""
    if isinstance(op, Unary | Binary | Comparison):
        return op.name not in _OWN_KERNELS
    return isinstance(op, Op) and op.name in _PRIMITIVES and type(op).__module__.startswith(_OPS)


def _work(x: Expression) -> int:
    """Elements of the largest result in an expression that has to be computed."""
    inside = max((_work(a) for a in x.args), default=0)
    if x.op in ("input", "constant", "broadcast", "reshape"):
        return inside
    return max(inside, math.prod(x.shape))


def kernel_of(tape: Tape, values: dict[int, Lowered], results: Sequence[int]) -> Call | None:
    """One call for several; None if it would give something else.

    Args:
        tape: Where the values come from.
        values: What the slots hold that the calls make.
        results: Those that are needed.
    """
    chain: Any = load("chain")
    try:
        plan, inputs, shape, order = plan_of(
            chain, values, results, lambda slot: tape.array_of(Ref(slot))
        )
    except Opaque:
        return None
    sums = [np.shape(tape.array_of(Ref(slot))) for slot in order[len(plan.results) :]]
    given = [tape.array_of(Ref(slot)) for slot in inputs]
    strides = [None if a.flags.c_contiguous else a.strides for a in given]
    try:
        body = chain.Chain(plan, shape, sums, strides)
    except RuntimeError:  # LLVM's, which has no others
        return None
    got = body(*given)
    expected = [tape.array_of(Ref(slot)) for slot in order]
    exactly = not any(step.op in APPROXIMATE for step in plan.steps)
    for a, b in zip(got if len(order) > 1 else (got,), expected, strict=True):
        if not alike(a, np.asarray(b), exactly=exactly):
            return None
    outs: Any = tuple(Ref(slot) for slot in order) if len(order) > 1 else Ref(order[0])
    return Call(body, [Ref(slot) for slot in inputs], {}, outs)
