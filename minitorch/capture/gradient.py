"""The backward of a recording: one run of the engine that notes which rules it calls on what."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..autograd.accumulation import added, grow
from ..autograd.engine import Pass, sum_to
from ..autograd.mode import quiet, state
from ..autograd.node import Node, leading_to
from ..autograd.parts import Parts, assemble, together
from ..backend.memory import address
from ..ops.elementwise import ADD
from ..ops.fused import Fused
from .fusion import is_elementwise
from .program import makes, reads
from .tape import Break, Call, Ref, Tape

_ARRAYS = (np.ndarray, np.generic)


class StandingPass(Pass):
    """A run of backward over a graph that stays as it is; no hooks of leaves run.

    Args:
        wanted: The edges whose gradients are wanted.
        roots: The outputs' edges.
    """

    def __init__(self, wanted: set[Any], roots: Sequence[Any]) -> None:
        needed = leading_to(roots, wanted)
        ends = [
            edge
            for edge in wanted
            if type(edge) is Node and not any(c in needed for c in edge.edges or ())
        ]
        super().__init__(False, True, wanted, needed, ends)

    def gradients(self, roots: Sequence[Any], seeds: Sequence[Any]) -> dict[Any, Any]:
        """The gradient of each wanted edge that is reached, for those of the outputs."""
        before, outer = state.recording, state.running
        state.recording, state.running = 0, self
        try:
            for root, seed in zip(roots, seeds, strict=True):
                self.add(root, seed, False)
            with quiet():
                self.run()
        finally:
            state.recording, state.running = before, outer
        return self.captured

    def finish_leaves(self) -> None:
        """Keeps the gradients of leaves; what is done with them comes later."""
        self.captured.update(self.pending)


class RecordedPass(StandingPass):
    """One that adds its calls to a tape.

    Args:
        tape: Where the calls go.
        wanted: The edges whose gradients are wanted.
        roots: The outputs' edges.
    """

    def __init__(self, tape: Tape, wanted: set[Any], roots: Sequence[Any]) -> None:
        super().__init__(wanted, roots)
        self.tape = tape
        self._first = tape.count
        self._compared: set[int] = set()  # with what kernels give, once backward is known

    def visit(self, node: Node, g: Any) -> None:
        """As the engine does, for nodes without hooks."""
        if node.meta is not None and not node.meta.keys() <= {"line", "meant", "notes"}:
            raise Break(f"hooks watch the gradients of {node.op.name}")
        super().visit(node, g)
        ref = self.tape.known(g)
        if ref is not None and ref.slot >= self._first and ref.slot not in self._compared:
            held = (*self.pending.values(), *self.captured.values())
            if not any(x is g or (type(x) is Parts and _is_in(g, x)) for x in held):
                self.tape.forget(ref)

    def plus(self, a: Any, b: Any, fresh: bool = False) -> Any:
        """The sum of two gradients."""
        args = (self._encoded(a), self._encoded(b))
        out = added(a, b)
        self._note(added, args, {}, out, op=ADD)
        return out

    def grown(self, total: Any, g: Any) -> Any:
        """`total` after `g` was added to it, in place when it is replayed: nobody else holds it."""
        args = (self._encoded(total), self._encoded(g))
        out = np.asarray(total + g)
        self._note(grow, args, {}, out, op=ADD)
        return out

    def assembled(self, parts: Parts) -> Any:
        """One gradient for those of parts."""
        out = assemble(parts.shape, parts.places, parts.whole, *parts.values)
        self._note(assemble, self._parts(parts), {}, out)
        return out

    def read_once(self, parts: Parts) -> Any:
        """As `assembled`, for who only reads it; where the parts lie is looked at in each run."""
        out = super().read_once(parts)
        if self.tape.known(out) is None:
            args = (self._encoded(x) for x in (parts.whole, *parts.values))
            self._note(Joined(parts), tuple(args), {}, out)
        return out

    def _parts(self, parts: Parts) -> tuple[Any, ...]:
        values = (self._encoded(x) for x in parts.values)
        return (parts.shape, tuple(parts.places), self._encoded(parts.whole), *values)

    def fitting(self, g: Any, shape: tuple[int, ...]) -> Any:
        """The gradient of an input of that shape that was broadcast."""
        out = sum_to(g, shape)
        self._note(sum_to, (self._encoded(g), shape), {}, out)
        return out

    def rules(self, node: Node, edges: Any, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """The gradients of the inputs of `node` that have an edge in `edges`."""
        op: Any = node.op
        refs = self._saved(node, saved)
        g_ref: Any = None
        if type(g) is Parts:  # the rule puts them together as it likes
            g_ref = self.tape.bind(g)
            self.tape.calls.append(Call(_together, self._parts(g), {}, g_ref))
        g_ref, params = g_ref or self._encoded(g), self._encoded(node.params)
        if op.vjps is not None:
            out: list[Any] = []
            for rule, edge in zip(op.vjps, edges, strict=True):
                gi = None
                if edge is not None and rule is not None:
                    gi = rule(g, *saved, **node.params)
                    self._note(rule, (g_ref, *refs), params, gi, op=op)
                out.append(gi)
            return out
        gradients = op.backward(node, g, saved)
        edges = node.edges  # a rule for all inputs does not know which are wanted
        if isinstance(op, Fused):
            n, needs = op.arity, op.needs(node)
            args: tuple[Any, ...] = (g_ref, needs, tuple(refs[n:]), *refs[:n])
            self._note(op.fast_backward, args, params, gradients)
        else:
            held = tuple(None if edge is None else True for edge in edges)
            args = (op.backward, held, params, g_ref, tuple(refs))
            self._note(_by_node, args, {}, gradients)
        return gradients

    def _saved(self, node: Node, saved: Sequence[Any]) -> list[Any]:
        residuals = self.tape.residuals.get(node)
        if residuals is None:
            return [self._encoded(x) for x in saved]
        n = len(node.op.saves)
        return [*(self._encoded(x) for x in saved[:n]), *residuals]

    def _encoded(self, value: Any) -> Any:
        """`value` with `Ref` for arrays; the zeros that stand for what no rule reads stay."""
        if isinstance(value, _ARRAYS):
            ref = self.tape.known(value)
            if ref is None and value.ndim and not any(value.strides):
                self.tape.constant(value)
                ref = self.tape.known(value)
            if ref is None:
                raise Break("backward uses an array that nothing recorded has made")
            return ref
        if type(value) in (tuple, list):
            return type(value)(self._encoded(x) for x in value)
        if type(value) is dict:
            return {key: self._encoded(x) for key, x in value.items()}
        return value

    def _note(self, body: Any, args: Any, params: Any, result: Any, op: Any = None) -> None:
        tape = self.tape
        if isinstance(result, tuple | list):
            outs: Any = tuple(self._out(x) for x in result)
        else:
            outs = self._out(result)
        call = Call(body, args, params, outs, op=op)
        tape.calls.append(call)
        if body is sum_to or is_elementwise(op):
            self._compared.update(reads(call), makes(call))

    def _out(self, value: Any) -> Ref | None:
        if not isinstance(value, _ARRAYS) or self.tape.known(value) is not None:
            return None
        return self.tape.bind(value)


def _together(shape: Any, places: Any, whole: Any, *values: Any) -> Parts:
    """Gradients of parts, as the engine collects them."""
    parts = Parts(shape, whole, places[0], values[0])
    for place, value in zip(places[1:], values[1:], strict=True):
        parts.add(place, value)
    return parts


def _is_in(g: Any, parts: Parts) -> bool:
    return any(x is g for x in (parts.whole, *parts.values))


class Joined:
    """What `Pass.read_once` gives for gradients of parts like these.

    Args:
        parts: Those of the recorded run.
    """

    def __init__(self, parts: Parts) -> None:
        self._shape, self._places, self._dtype = parts.shape, tuple(parts.places), parts.dtype
        self._size = parts.held
        self._seats: list[tuple[int, tuple[int, ...]]] | None = None
        total = together(parts)
        if total is not None:
            seats = [total[place] for place in self._places]
            self._seats = [(address(a) - address(total), a.strides) for a in seats]

    def __call__(self, whole: Any, *values: Any) -> Any:
        """The memory that the values fill in their order, where they do, else new one."""
        memory = values[0].base
        if self._seats is None or type(memory) is not np.ndarray or memory.dtype != self._dtype:
            return assemble(self._shape, self._places, whole, *values)
        if memory.size != self._size or not memory.flags.c_contiguous:
            return assemble(self._shape, self._places, whole, *values)
        start = address(memory)
        for value, seat in zip(values, self._seats, strict=True):
            if value.base is not memory or (address(value) - start, value.strides) != seat:
                return assemble(self._shape, self._places, whole, *values)
        return memory.reshape(self._shape)


def _by_node(rule: Any, held: Any, params: Any, g: Any, saved: Any) -> Any:
    """Calls a rule that reads the node; `held` says which inputs have an edge."""
    return rule(SimpleNamespace(edges=held, params=params, saved=saved), g, saved)


def leaves_of(roots: Sequence[Any], stops: set[Any]) -> list[Any]:
    """The leaf tensors that the graph of the roots ends in, without going past `stops`."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = [root for root in roots if root is not None]
    while waiting:
        edge = waiting.pop()
        if id(edge) in seen or edge in stops:
            continue
        seen.add(id(edge))
        if type(edge) is Node:
            waiting.extend(e for e in edge.edges or () if e is not None)
        else:
            found[id(edge)] = edge
    return list(found.values())


def seeds_like(arrays: Sequence[Any]) -> list[Any]:
    """Gradients of the outputs to record with: not all the same, so that mistakes show."""
    out = []
    for i, a in enumerate(arrays):
        ramp = np.arange(a.size, dtype=np.float64).reshape(a.shape)
        out.append((1.0 + i + ramp % 7 / 16).astype(a.dtype))
    return out
