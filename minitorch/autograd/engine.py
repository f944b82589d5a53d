"""Backward: the gradient of each output flows to the leaves, newest operation first.

Inputs of an operation have smaller sequence numbers than the operation, so that a heap ordered by
falling numbers visits every node after all of its consumers. Nothing recurses: a chain of any
length needs no stack.

Between operations flows `h = ∂L/∂x - i ∂L/∂y` for `z = x + iy`, with which rules of holomorphic
operations read like those of real ones. Users see PyTorch's gradient, its conjugate: `as_seen`
stands where gradients come in and go out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any

from .. import backend
from ..errors import ArgumentError, GraphError, describe
from ..ops import primitive
from ..ops.primitive import Op, fitted, wrap
from .accumulation import accumulate, added, grow, sum_to
from .grad_hooks import AfterAccumulation, run_hook, run_node_hook, watchers
from .mode import quiet, recording_level, state
from .node import Node, check_versions, leading_to, where, writes
from .parts import Parts, assemble, together
from .reconnected import as_tensors
from .saved import Packed
from .seeds import seeds

Edge = Any  # Node, or the leaf Tensor


class _OutputOf(Op):
    """Output number `index` of an operation with several outputs."""

    name = "output_of"


OUTPUT_OF = _OutputOf()


class Pass:
    """One run of backward.

    Args:
        create_graph: Gradients are Tensors with a graph of their own.
        retain_graph: Saved values are kept for another run.
        wanted: Edges whose gradient is captured instead of accumulated, or None.
        needed: Edges that lead to a wanted one, or None for all.
        ends: Wanted nodes below which nothing is wanted.
    """

    def __init__(
        self,
        create_graph: bool,
        retain_graph: bool,
        wanted: set[Edge] | None = None,
        needed: set[Edge] | None = None,
        ends: Iterable[Edge] = (),
    ) -> None:
        self.create_graph = create_graph
        self.retain_graph = retain_graph
        self.wanted = wanted
        self.needed = needed
        self.ends = set(ends)
        self.captured: dict[Edge, Any] = {}
        self.roots: list[Edge] = []
        self.reach: set[Edge] = set()
        self.heap: list[tuple[int, Node]] = []
        self.pending: dict[Edge, Any] = {}
        self.summed: set[Edge] = set()
        self.fresh: set[Edge] = set()

    def reached(self) -> set[Edge]:
        """The edges that this run gets to, before it has consumed any."""
        if self.needed is not None:
            return self.needed
        return leading_to([root for root in self.roots if root is not None], None)

    def add(self, edge: Edge, g: Any, fresh: bool) -> None:
        """Adds `g` to what flows into `edge`; `fresh` if nothing else holds its memory."""
        pending = self.pending
        if (before := pending.get(edge)) is None:
            if type(edge) is Node:
                heapq.heappush(self.heap, (-edge.sequence, edge))
            pending[edge] = g
            if fresh:
                self.fresh.add(edge)
        elif self.create_graph:
            pending[edge] = before + g
        elif type(before) is Parts:
            self.settle(edge, before)
            self.add(edge, g, fresh)
        elif edge in self.summed and before.dtype == g.dtype:
            pending[edge] = self.grown(before, g)
        else:
            pending[edge] = total = self.plus(before, g, fresh)
            if type(total) is type(before):
                self.summed.add(edge)
                self.fresh.add(edge)

    def add_part(self, edge: Edge, g: Any, place: Any, shape: tuple[int, ...]) -> None:
        """Adds `g` to what flows into the slice at `place` of the output of `edge`."""
        parts = self.pending.get(edge)
        if parts is not None and parts.dtype != g.dtype:
            self.add(edge, self.assembled(Parts(shape, None, place, g)), True)
        elif type(parts) is Parts:
            if not parts.add(place, g):
                self.settle(edge, parts)
        else:
            if parts is None and type(edge) is Node:
                heapq.heappush(self.heap, (-edge.sequence, edge))
            self.pending[edge] = Parts(shape, parts, place, g)

    def settle(self, edge: Edge, parts: Parts) -> None:
        """Puts the gradients of parts of the output of `edge` together."""
        self.pending[edge] = self.assembled(parts)
        self.summed.add(edge)
        self.fresh.add(edge)

    def assembled(self, parts: Parts) -> Any:
        """One gradient for those of parts."""
        return assemble(parts.shape, parts.places, parts.whole, *parts.values)

    def read_once(self, parts: Parts) -> Any:
        """As `assembled`, for who only reads it."""
        total = together(parts)
        return self.assembled(parts) if total is None else total

    def plus(self, a: Any, b: Any, fresh: bool = False) -> Any:
        """The sum of two gradients; nothing else holds the memory of `b` if that is `fresh`."""
        return added(a, b, fresh)

    def grown(self, total: Any, g: Any) -> Any:
        """`total` after `g` was added to it in place."""
        return grow(total, g)

    def fitting(self, g: Any, shape: tuple[int, ...]) -> Any:
        """The gradient of an input of that shape that was broadcast."""
        return sum_to(g, shape)

    def rules(self, node: Node, edges: Any, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """The gradients of the inputs of `node` that have an edge in `edges`."""
        op, params = node.op, node.params
        if op.vjps is None:
            return (op.backward_onto if op.adds_onto else op.backward)(node, g, saved)
        gradients: list[Any] = []
        for rule, edge in zip(op.vjps, edges, strict=True):
            unwanted = edge is None or rule is None
            gradients.append(None if unwanted else rule(g, *saved, **params))
        return gradients

    def _add_output(self, edge: Node, g: Any) -> None:
        """Puts `g` where the rule of the operation with several outputs finds it."""
        assert edge.edges is not None
        owner: Any = edge.edges[0]
        gradients = self.pending.get(owner)
        if gradients is None:
            gradients = self.pending[owner] = [None] * owner.params["outputs"]
            heapq.heappush(self.heap, (-owner.sequence, owner))
        i = edge.params["index"]  # a saved output is a second way to the same output
        gradients[i] = g if gradients[i] is None else self.plus(gradients[i], g)

    def run(self) -> None:
        """Visits every node that has a gradient, then hands the leaves theirs."""
        heap, pending = self.heap, self.pending
        while heap:
            node = heapq.heappop(heap)[1]
            g = pending.pop(node)
            if type(g) is Parts:
                only_read = node.meta is None and (self.wanted is None or node not in self.wanted)
                if not only_read:
                    g = self.assembled(g)
                elif not node.op.takes_parts:
                    g = self.read_once(g)
            if node.meta is not None:
                for hook in list(node.meta.get("hooks", {}).values()):
                    g = run_hook(hook, g, self.create_graph)
            if self.wanted is not None and node in self.wanted:
                self.captured[node] = g
                if node in self.ends:
                    continue
            if node.op is OUTPUT_OF:
                self._add_output(node, g)
            else:
                self.visit(node, g)
        for leaf, g in pending.items():
            if type(g) is Parts:
                self.settle(leaf, g)
        self.finish_leaves()

    def visit(self, node: Node, g: Any) -> None:
        """Runs the rule of `node` and passes the gradients on."""
        edges: Any = node.edges
        if edges is None:
            node.raise_consumed()
        if node.sequence < writes.last and node.versions:  # what was saved later is as it was
            check_versions(node, node.versions)
        op, needed = node.op, self.needed
        if needed is not None:  # rules of other inputs need not run
            edges = [edge if edge is not None and edge in needed else None for edge in edges]
        if op.selects and node.meta is None and not self.create_graph:
            if edges[0] is not None:
                self.add_part(edges[0], g, node.params["index"], node.params["source"])
            return
        if node.meta is None:
            saved = node.saved if not self.create_graph else as_tensors(node, node.saved)
            gradients = self.rules(node, edges, g, saved)
        else:
            gradients = self._visit_noted(node, edges, g)
        owned = op.owns_gradients and (node.meta is None or "after" not in node.meta)
        if node.shapes is not None:
            gradients = self._fitted(gradients, edges, node.shapes)
        for edge, gi in zip(edges, gradients, strict=False):
            if edge is not None and gi is not None:
                self.add(edge, gi, owned and gi is not g)
        if op.passes_by and len(gradients) > len(edges):
            self.add(op.behind(node), gradients[-1], True)
        if not self.retain_graph and node.saved:
            node.saved = node.versions = ()
            node.edges = None
            node.params = primitive.NO_PARAMS

    def _fitted(self, gradients: Sequence[Any], edges: Any, shapes: Any) -> list[Any]:
        """The gradients of inputs that were broadcast, each of the shape of its input."""
        return [
            gi if e is None or gi is None or gi.shape == shape else self.fitting(gi, shape)
            for gi, e, shape in zip(gradients, edges, shapes, strict=False)
        ]

    def _visit_noted(self, node: Node, edges: Any, g: Any) -> Sequence[Any]:
        """The gradients of a node that has packed values, a noted line or hooks."""
        meta: Any = node.meta
        saved = node.saved
        if "packed" in meta:
            saved = tuple([x.unpacked() if isinstance(x, Packed) else x for x in saved])
        if self.create_graph:
            saved = tuple(as_tensors(node, saved))
        rules = self._explained if where(node) else self.rules
        gradients = rules(node, edges, g, saved)
        for hook in list(meta.get("after", {}).values()):
            gradients = run_node_hook(hook, gradients, g, self.create_graph)
        return gradients

    def _explained(self, node: Node, edges: Any, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """As `rules`; errors and, under anomaly mode, NaN name the forward line."""
        try:
            gradients = self.rules(node, edges, g, saved)
        except Exception as error:
            error.add_note(f"In the backward of {node.op.name}.{where(node)}")
            raise
        if state.check_nan and state.anomaly:
            for i, gi in enumerate(gradients):
                if gi is not None and edges[i] is not None and _has_nan(gi):
                    raise GraphError(
                        f"backward: the rule of {node.op.name} produced NaN for its input {i}."
                        f"{where(node)} Look for a division by zero, log or sqrt at 0, or an "
                        "overflow there."
                    )
        return gradients

    def finish_leaves(self) -> None:
        """Runs hooks of leaves, then captures or accumulates their gradients."""
        for leaf, g in self.pending.items():
            hooks = leaf._hooks
            if hooks:
                for hook in list(hooks.values()):
                    if type(hook) is not AfterAccumulation:
                        g = run_hook(hook, g, self.create_graph)
                self.fresh.discard(leaf)  # a hook may have kept it, or given its own
            if self.wanted is not None:
                self.captured[leaf] = g
            else:
                accumulate(leaf, g, leaf in self.fresh, self.create_graph)


def _has_nan(g: Any) -> bool:
    array = getattr(g, "_array", g)
    return bool((array != array).any())


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulates the gradients of `tensors` into the `.grad` of the leaves they came from.

    Args:
        tensors: A Tensor or a sequence of them.
        grad_tensors: For each, the gradient of the final value with respect to it, of the same
            shape; None stands for 1 and is allowed for one-element tensors.
        retain_graph: Keep saved values for another backward. Default: `create_graph`.
        create_graph: Record the gradients themselves, for higher derivatives.
        inputs: Accumulate only into these tensors.

    Raises:
        GraphError: A tensor has no graph, or the graph was consumed before.
        ShapeError: A gradient has another shape than its tensor.
    """
    node = getattr(tensors, "_node", None)
    if node is not None and node.op.name == "captured":
        plain = grad_tensors is None and inputs is None and not create_graph
        if plain and not watchers and node.op.alone(tensors, bool(retain_graph)):
            return
    tensors = listed(tensors)
    given = None if grad_tensors is None else listed(grad_tensors)
    grads = seeds(tensors, given, "backward")
    wanted = None if inputs is None else listed(inputs)
    if wanted is not None and not wanted:
        raise GraphError("backward: `inputs` is empty. Name at least one tensor, or pass None.")
    captured = _run(tensors, grads, retain_graph, create_graph, wanted)
    for t in wanted or ():
        g = captured.get(primitive.edge_of(t))
        if g is not None:
            accumulate(t, g, False, create_graph)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` with respect to `inputs`; `.grad` stays untouched.

    Args:
        outputs: A Tensor or a sequence of them.
        inputs: A Tensor or a sequence of them, leaves or intermediate values.
        grad_outputs: As `grad_tensors` of `backward`.
        retain_graph: Keep saved values. Default: `create_graph`.
        create_graph: Record the gradients, for higher derivatives.
        only_inputs: True; `.grad` of other leaves is never touched.
        allow_unused: Give None for an input that the outputs do not depend on.
        materialize_grads: Give zeros instead of None.
        is_grads_batched: `grad_outputs` hold several gradients along a first axis, and so do the
            results; each is a run of its own.

    Returns:
        One Tensor of the input's shape (or None) for each input.

    Raises:
        GraphError: An input is not part of the graph and `allow_unused` is not set.
        ArgumentError: `only_inputs` is False.
    """
    if not only_inputs:
        raise ArgumentError(
            "grad: only the gradients of the inputs are computed. Got only_inputs=False. "
            "Call backward() to accumulate into every leaf."
        )
    outputs, inputs = listed(outputs), listed(inputs)
    if is_grads_batched:
        from .batched import grad_batched

        return grad_batched(
            outputs,
            inputs,
            grad_outputs,
            retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
    for i, t in enumerate(inputs):
        if not t.requires_grad:
            raise GraphError(
                f"grad: every input must require grad. Input {i}, {describe(t)}, does not. "
                "Call .requires_grad_() on it before it is used."
            )
    given = None if grad_outputs is None else listed(grad_outputs)
    grads = seeds(outputs, given, "grad")
    captured = _run(outputs, grads, retain_graph, create_graph, inputs)
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    results: list[Any] = []
    for i, t in enumerate(inputs):
        g = captured.get(primitive.edge_of(t))
        if g is None and not allow_unused:
            raise GraphError(
                f"grad: the outputs do not depend on input {i}, {describe(t)}. "
                "Pass allow_unused=True to get None for it, or use it in the outputs."
            )
        if g is None and materialize_grads:
            g = backend.namespace(t._array).zeros_like(t._array)
        elif g is not None:
            g = fitted(g, t._array.dtype)
        results.append(wrap(g) if g is not None and not hasattr(g, "_array") else g)
    return tuple(results)


def _run(
    tensors: list[Any],
    grads: list[Any],
    retain_graph: bool | None,
    create_graph: bool,
    inputs: list[Any] | None,
) -> dict[Edge, Any]:
    """One pass from `tensors`; returns the captured gradients."""
    roots = [primitive.edge_of(t) for t in tensors]
    wanted = needed = None
    ends: list[Edge] = []
    if inputs is not None:
        wanted = {primitive.edge_of(t) for t in inputs} - {None}
        needed = leading_to([r for r in roots if r is not None], wanted)
        ends = [
            edge
            for edge in wanted
            if type(edge) is Node and not any(c in needed for c in edge.edges or ())
        ]
    retain = create_graph if retain_graph is None else retain_graph
    run = Pass(create_graph, retain, wanted, needed, ends)
    run.roots = roots
    if watchers:
        run.reach = run.reached()
    before, outer = state.recording, state.running
    state.recording = recording_level(True) if create_graph else 0
    state.running = run
    try:
        for root, g in zip(roots, grads, strict=True):
            if needed is None or root in needed:
                is_tensor = isinstance(g, primitive.Tensor)
                if create_graph and not is_tensor:
                    g = wrap(g)
                elif is_tensor and not create_graph:
                    g = g._array
                run.add(root, g, False)
        if state.quiet:
            run.run()
        else:
            with quiet():
                run.run()
    finally:
        state.recording, state.running = before, outer
    return run.captured


def listed(value: Any) -> list[Any]:
    """One tensor as a list of one."""
    return [value] if isinstance(value, primitive.Tensor) else list(value)
