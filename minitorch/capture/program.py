"""A recording as Python source: straight-line functions of arrays, compiled once."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..ops import primitive
from .tape import Call, External, Ref, Tape, TensorOf

# From this size on the memory of a value is given back as soon as nothing reads it any more.
_LARGE_BYTES = 1 << 14


class Retreat(Exception):
    """A value that the recording relies on came out differently."""


class Source:
    """Lines of one function, and the objects that they name.

    Args:
        tape: Where the values come from.
        tensors: For slots of tensors from before, the tensors.
    """

    def __init__(self, tape: Tape, tensors: dict[int, Any]) -> None:
        self._tape, self._tensors = tape, tensors
        self._objects: dict[str, Any] = {"asarray": np.asarray, "wrap": primitive.wrap}
        self._names: dict[int, str] = {}
        self._keep: list[Any] = []

    def name(self, value: Any, prefix: str = "k") -> str:
        """The name of an object, or the literal that gives it."""
        if value is None or type(value) in (bool, int, str) or value is Ellipsis:
            return repr(value)
        known = self._names.get(id(value))
        if known is None:
            known = self._names[id(value)] = f"{prefix}{len(self._names)}"
            self._objects[known] = value
            self._keep.append(value)
        return known

    def text(self, value: Any, *, late: bool = False) -> str:
        """An argument as source."""
        if isinstance(value, Ref):
            return f"v{value.slot}"
        if isinstance(value, TensorOf):
            held = self._tensors.get(value.ref.slot)
            if late and held is not None:
                return self.name(held, "t")
            return f"wrap(v{value.ref.slot})"
        if not any(True for _ in refs_in(value)):
            return self.name(value)
        if isinstance(value, dict):
            inside = ", ".join(f"{k!r}: {self.text(x, late=late)}" for k, x in value.items())
            return "{" + inside + "}"
        parts = ", ".join(self.text(x, late=late) for x in value)
        if isinstance(value, list):
            return f"[{parts}]"
        return f"({parts},)"

    def call(self, call: Call) -> str:
        """The expression of a call."""
        late = call.kind in ("late", "write", "log")
        args = [self.text(x, late=late) for x in call.args]
        args += [f"{k}={self.text(x, late=late)}" for k, x in call.kwargs.items()]
        text = f"{self.name(call.body, 'f')}({', '.join(args)})"
        if call.convert == "array":
            return f"asarray({text})"
        return f"{text}._array" if call.convert == "tensor" else text

    def lines(self, call: Call, used: set[int]) -> list[str]:
        """The statements of a call; results that nobody uses get no name."""
        text = self.call(call)
        if call.kind == "check":
            if call.answer is None:
                return [text]
            return [f"if {text} != {self.name(call.answer)}:", "    raise Retreat"]
        target = _target(call.outs, used)
        return [text if target == "_" else f"{target} = {text}"]

    def function(self, name: str, head: str, lines: Sequence[str], label: str) -> Any:
        """The compiled function."""
        text = "\n".join([head, *("    " + line for line in lines)]) + "\n"
        file = f"<captured {label}: {name}>"
        self._objects["Retreat"] = Retreat
        exec(compile(text, file, "exec"), self._objects)
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        return self._objects[name]


def _target(outs: Any, used: set[int]) -> str:
    if isinstance(outs, Ref):
        return f"v{outs.slot}" if outs.slot in used else "_"
    if not isinstance(outs, tuple) or all(x == "_" for x in _parts(outs, used)):
        return "_"
    return f"({', '.join(_parts(outs, used))},)"


def _parts(outs: Any, used: set[int]) -> list[str]:
    return [_target(part, used) for part in outs]


def refs_in(value: Any) -> Iterable[Ref]:
    """Every `Ref` inside of arguments or results."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, TensorOf):
        yield value.ref
    elif isinstance(value, tuple | list):
        for part in value:
            yield from refs_in(part)
    elif type(value) is dict:
        for part in value.values():
            yield from refs_in(part)


def reads(call: Call) -> Iterable[int]:
    """The slots that a call reads."""
    return (ref.slot for ref in refs_in((call.args, call.kwargs)))


def makes(call: Call) -> Iterable[int]:
    """The slots that a call fills."""
    return (ref.slot for ref in refs_in(call.outs))


def needed(calls: Sequence[Call], wanted: Iterable[int]) -> tuple[list[Call], set[int]]:
    """The calls that have an effect or lead to a wanted slot, and all slots that are read."""
    used = set(wanted)
    kept: list[Call] = []
    for call in reversed(calls):
        if call.kind == "pure" and used.isdisjoint(makes(call)):
            continue
        kept.append(call)
        used.update(reads(call))
    return kept[::-1], used


def with_releases(
    source: Source, tape: Tape, calls: Sequence[Call], used: set[int], keep: set[int]
) -> list[str]:
    """The lines of calls; large values are let go after the last line that reads them."""
    last: dict[int, int] = {}
    for i, call in enumerate(calls):
        for slot in (*reads(call), *(ref.slot for ref in refs_in(call.outs))):
            last[slot] = i
    lines: list[str] = []
    for i, call in enumerate(calls):
        lines += source.lines(call, used)
        over = [
            slot
            for slot in dict.fromkeys((*reads(call), *(r.slot for r in refs_in(call.outs))))
            if last[slot] == i and slot not in keep and slot in used
        ]
        over = [s for s in over if getattr(tape.array_of(Ref(s)), "nbytes", 0) >= _LARGE_BYTES]
        if over:
            lines.append("del " + ", ".join(f"v{slot}" for slot in over))
    return lines


Forward = Callable[..., tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]


def forward_of(
    tape: Tape,
    calls: Sequence[Call],
    late: Sequence[Call],
    outputs: Sequence[int],
    saved: Sequence[int],
    externals: Sequence[External],
    tensors: dict[int, Any],
    label: str,
) -> tuple[Forward, Callable[..., None] | None]:
    """`forward(*inputs, *externals)` to the outputs, what backward needs and what `late` needs; and
    `effects(values, told)`, which runs the late calls, those of kind "log" only if `told`."""
    for_late = sorted({slot for call in late for slot in reads(call)})
    keep = {*outputs, *saved, *for_late}
    kept, used = needed(calls, keep)
    source = Source(tape, tensors)
    made = {ref.slot for call in kept for ref in refs_in(call.outs)}
    lines = []
    for slot, value in tape.constants.items():
        if slot in used:
            copy = ".copy()" if slot in tape.fresh or slot in keep else ""
            lines.append(f"v{slot} = {source.name(value)}{copy}")
    given = [*(ref.slot for ref in tape.inputs), *(e.ref.slot for e in externals)]
    lines += with_releases(source, tape, kept, used, keep)
    lines.append(f"return {_tuple(outputs)}, {_tuple(saved)}, {_tuple(for_late)}")
    assert used <= made | set(given) | set(tape.constants), "a value without origin"
    head = f"def forward({', '.join(f'v{slot}' for slot in given)}):"
    forward = source.function("forward", head, lines, label)
    if not late:
        return forward, None
    body = [f"{_tuple(for_late)} = values"] if for_late else []
    for call in late:
        text = source.call(call)
        body.append(f"if told: {text}" if call.kind == "log" else text)
    effects = source.function("effects", "def effects(values, told):", body, label)
    return forward, effects


def backward_of(
    tape: Tape,
    calls: Sequence[Call],
    seeds: Sequence[int],
    saved: Sequence[int],
    gradients: Sequence[tuple[int | None, bool]],
    label: str,
) -> Callable[..., list[Any]]:
    """`backward(saved, *seeds)` to one gradient per edge; those that others hold are copied.

    `saved` is a list, which it empties.

    Args:
        tape: The tape, whose constants the calls may read.
        calls: The calls of the backward pass, in order; those that no gradient needs are left out.
        seeds: Slots of the gradients of the results.
        saved: Slots of what the forward pass kept, in the order of `saved`.
        label: Name of the program, for tracebacks.
        gradients: For each edge the slot of its gradient (None without one), and whether the
            memory is its alone.
    """
    wanted = [slot for slot, _ in gradients if slot is not None]
    kept, used = needed(calls, wanted)
    source = Source(tape, {})
    lines = [f"{_tuple(saved)} = saved", "saved.clear()"] if saved else []
    for slot, value in tape.constants.items():
        if slot in used and slot not in saved:
            lines.append(f"v{slot} = {source.name(value)}")
    lines += with_releases(source, tape, kept, used, set(wanted))
    texts = [
        "None" if slot is None else f"v{slot}" if alone else f"v{slot}.copy()"
        for slot, alone in gradients
    ]
    lines.append(f"return [{', '.join(texts)}]")
    head = f"def backward(saved{''.join(f', v{slot}' for slot in seeds)}):"
    return source.function("backward", head, lines, label)


def _tuple(slots: Sequence[int]) -> str:
    return f"({''.join(f'v{slot}, ' for slot in slots)})"
