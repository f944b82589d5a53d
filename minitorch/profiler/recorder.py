"""Keeps the calls of operations as events: times, shapes, memory, FLOPs, the user's line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from ..autograd.node import user_line
from ..ops.flops import backward_flops, forward_flops, inside_product
from ..ops.observing import Call, Observer
from ..ops.primitive import raw
from .events import FunctionEvent


class Recorder(Observer):
    """An observer that makes a `FunctionEvent` of each call.

    Args:
        shapes: Keep the shapes of inputs.
        memory: Keep the bytes of the arrays that operations return (views cost nothing).
        flops: Keep the FLOPs of products.
        stack: Keep the user's line.
        synchronize: Called before each clock reading, so that a device's work is in the times.

    Attributes:
        events: The events, in the order in which they ended.
    """

    def __init__(
        self,
        *,
        shapes: bool = False,
        memory: bool = False,
        flops: bool = False,
        stack: bool = False,
        synchronize: Callable[[], None] | None = None,
    ) -> None:
        self.shapes, self.memory, self.flops, self.stack = shapes, memory, flops, stack
        self.synchronize = synchronize
        self.events: list[FunctionEvent] = []
        self._lock = threading.Lock()

    def begin(self, call: Call) -> None:
        notes = call.notes
        if self.flops and call.node is not None:
            notes["flops"] = backward_flops(call)
        if self.shapes:
            notes["shapes"] = [_shape(x) for x in call.inputs]
        if self.stack:
            notes["line"] = user_line()
        if self.synchronize is not None:
            self.synchronize()

    def end(self, call: Call) -> None:
        if self.synchronize is not None:
            self.synchronize()
            call.end = perf_counter_ns()
        notes = call.notes
        flops = notes.get("flops", 0)
        if self.flops and not flops and not inside_product(call):
            flops = forward_flops(call)
        event = FunctionEvent(
            name=call.name,
            start_us=call.start / 1000,
            end_us=call.end / 1000,
            thread=call.thread,
            kind=_kind(call),
            input_shapes=notes.get("shapes", []),
            cpu_memory_usage=_bytes(call.output) if self.memory and call.op else 0,
            flops=flops,
            line=notes.get("line", ""),
        )
        for child in notes.get("children", ()):
            child.cpu_parent = event
            event.cpu_children.append(child)
        if call.parent is not None:
            call.parent.notes.setdefault("children", []).append(event)
        with self._lock:
            self.events.append(event)


def _kind(call: Call) -> str:
    if call.node is not None:
        return "backward"
    return "operation" if call.op is not None else "label"


def _shape(x: Any) -> list[int]:
    shape = getattr(raw(x), "shape", None)
    return [] if shape is None else list(shape)


def _bytes(output: Any) -> int:
    if isinstance(output, tuple):
        return sum(map(_bytes, output))
    array = raw(output)
    if not hasattr(array, "nbytes") or getattr(array, "base", None) is not None:
        return 0
    return int(array.nbytes)
