"""Expressions as the plan of a kernel: axes that are passed over, arrays, steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .symbols import Expression, Opaque

SHORT = 16  # numbers in a row below which a kernel would be mostly ends of loops
_SHAPES = ("input", "constant", "broadcast", "reshape")


class Lowered:
    """What a call computes.

    Attributes:
        value: For each element.
        sums: None, or what is summed: "rows" or "columns", and the first axis of a row.
        shape: What is passed over.
        inputs: Slots of the arrays.
        steps: What is computed, without reading and views.
        has_kernel: There is one for it alone.
    """

    def __init__(
        self, value: Expression, sums: tuple[str, int] | None = None, has_kernel: bool = False
    ) -> None:
        self.has_kernel = has_kernel
        self.value, self.sums, self.shape = value, sums, value.shape
        found = list(dict.fromkeys(_parts_of(value)))
        self.inputs = {x.value for x in found if x.op == "input"}
        self.steps = [x for x in found if x.op not in _SHAPES]
        if sums is not None:
            self.steps.append(value)


def _parts_of(x: Expression) -> Iterator[Expression]:
    yield x
    for a in x.args:
        yield from _parts_of(a)


Axes = tuple[int | None, ...]


class _Maker:
    """Collects the steps of a plan; equal ones are one."""

    def __init__(self, chain: Any, values: dict[int, Lowered]) -> None:
        self._chain, self._values = chain, values
        self.steps: list[Any] = []
        self.inputs: dict[tuple[int, Axes], tuple[int, str]] = {}
        self._known: dict[Any, int] = {}
        self._seen: dict[tuple[int, Axes], int] = {}

    def _step(self, op: str, args: tuple[int, ...], kind: str, value: Any = None) -> int:
        key = (op, args, kind, repr(value))
        if key not in self._known:
            self._known[key] = len(self.steps)
            self.steps.append(self._chain.Step(op, args, kind, value))
        return self._known[key]

    def value(self, x: Expression, axes: Axes) -> int:
        """The step that gives `x`, whose axes are those of what is passed over."""
        key = (id(x), axes)
        if key not in self._seen:
            self._seen[key] = self._made(x, axes)
        return self._seen[key]

    def _made(self, x: Expression, axes: Axes) -> int:
        if x.op == "constant":
            return self._step(x.op, (), x.dtype, x.value)
        if x.op == "input":
            inside = self._values.get(x.value)
            if inside is not None and inside.sums is None:
                return self.value(inside.value, axes)
            number = self.inputs.setdefault((x.value, axes), (len(self.inputs), x.dtype))[0]
            return self._step(x.op, (), x.dtype, number)
        if x.op == "reshape":
            (inner,) = x.args
            named = [a for a, n in zip(axes, x.shape, strict=True) if n != 1]
            rest = iter(named)
            return self.value(inner, tuple(None if n == 1 else next(rest) for n in inner.shape))
        args = tuple(self.value(a, _aligned(a.shape, x.shape, axes)) for a in x.args)
        if x.op == "broadcast":
            return args[0]
        return self._step(x.op, args, x.dtype)


def _aligned(shape: Sequence[int], outer: Sequence[int], axes: Axes) -> Axes:
    """The axes of an operand whose result has the shape `outer`."""
    skipped = len(outer) - len(shape)
    return tuple(None if n == 1 else axes[i + skipped] for i, n in enumerate(shape))


def lies_in_rows(a: Any) -> bool:
    """Whether an array lies in memory in the order of its axes, the last one without gaps."""
    strides = [s for s, n in zip(a.strides, a.shape, strict=True) if n != 1]
    return bool(strides) and strides[-1] == a.itemsize and strides == sorted(strides)[::-1]


def _strides_of(a: Any, axes: Axes) -> dict[int, int]:
    """For axes of what is passed over, how many numbers lie between neighbours in an array."""
    pairs = zip(axes, a.strides, strict=True)
    return {axis: stride // a.itemsize for axis, stride in pairs if axis is not None}


class Planned(NamedTuple):
    """A plan, and what it is applied to.

    Attributes:
        plan: `chain.Plan`.
        inputs: The slots that it reads.
        shape: Of the results that are no sums.
        results: The slots of all results, sums last.
    """

    plan: Any
    inputs: list[int]
    shape: tuple[int, ...]
    results: list[int]


def plan_of(
    chain: Any,
    values: dict[int, Lowered],
    results: Sequence[int],
    array_of: Callable[[int], Any],
) -> Planned:
    """The plan of one kernel for several values.

    Args:
        chain: The module `kernels.cpu.chain`.
        values: What the slots hold.
        results: Those that are wanted.
        array_of: What was in a slot.

    Raises:
        Opaque: It would be no quick loop.
    """
    shape = next(iter(values.values())).shape
    maker = _Maker(chain, values)
    axes = tuple(None if n == 1 else i for i, n in enumerate(shape))
    plain = [slot for slot in results if values[slot].sums is None]
    sums = [slot for slot in results if values[slot].sums is not None]
    numbers = {slot: maker.value(values[slot].value, axes) for slot in (*plain, *sums)}
    real = [i for i, n in enumerate(shape) if n != 1]
    found = [_strides_of(np.asarray(array_of(slot)), axes) for slot, axes in maker.inputs]
    rows = [[strides.get(axis, 0) for axis in real] for strides in found]
    along, cut = (values[sums[0]].sums if sums else None) or ("", len(shape))
    groups: list[list[int]] = []
    for i, axis in enumerate(real):
        n = shape[axis]
        together = groups and axis != cut and all(row[i - 1] == row[i] * n for row in rows)
        groups[-1].append(i) if together else groups.append([i])
    sizes = tuple(math.prod(shape[real[i]] for i in group) for group in groups)
    if not sizes or (len(sizes) > 1 and sizes[-1] < SHORT):
        raise Opaque("short rows")
    if along == "rows" and cut <= real[0]:
        along = "all"
    if along == "all" and len(sizes) > 1 and sizes[-1] % chain.LANES:
        raise Opaque("rows that are cut")
    if sums and along != "all" and real[groups[-1][0]] != min(axis for axis in real if axis >= cut):
        raise Opaque("sums of several axes")
    if any(row[-1] > 1 for row in rows):
        raise Opaque("numbers apart")
    inputs = tuple(
        (kind, tuple(row[group[-1]] for group in groups))
        for (_, kind), row in zip(maker.inputs.values(), rows, strict=True)
    )
    plan = chain.Plan(
        sizes,
        inputs,
        tuple(maker.steps),
        tuple(numbers[slot] for slot in plain),
        tuple(numbers[slot] for slot in sums),
        along or "rows",
    )
    slots = [slot for slot, _ in maker.inputs]
    return Planned(plan, slots, shape, [*plain, *sums])
