"""A captured step in the graph: one operation whose rule is the recorded backward."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.accumulation import accumulate
from ..autograd.engine import OUTPUT_OF
from ..autograd.mode import state
from ..autograd.node import Node, check_versions
from ..errors import GraphError
from ..ops.primitive import Op, Tensor, new_node


class Region(Op):
    """The operation "captured": its outputs come from the edges by a recording."""

    name = "captured"

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """One gradient for each edge.

        Raises:
            GraphError: The gradients shall have a graph of their own.
        """
        gs = g if isinstance(g, list) else [g]
        if any(isinstance(part, Tensor) for part in gs):
            raise GraphError(
                "backward: a captured step has gradients of first order only. Got "
                "create_graph=True. Call the function itself, without compile, where gradients "
                "are differentiated again."
            )
        return self._gradients(node, gs, state.running is None or state.running.retain_graph)

    def alone(self, t: Any, retain: bool) -> bool:
        """`t.backward()` of a number with nothing but this between it and leaves without hooks: the
        pass of the engine in few words. False, with nothing done, for anything else."""
        node, array = t._node, t._array
        edges = node.edges
        if node.meta is not None or edges is None or array.size != 1 or array.dtype.kind != "f":
            return False
        for edge in edges:
            if type(edge) is Node or (edge is not None and edge._hooks):
                return False
        if node.versions:
            node.check_versions()
        before, state.recording = state.recording, 0
        try:
            quietly(self._to_leaves, node, edges, _one(array.dtype, array.shape), retain)
        finally:
            state.recording = before
        return True

    def _to_leaves(self, node: Node, edges: Sequence[Any], g: Any, retain: bool) -> None:
        for edge, gi in zip(edges, self._gradients(node, [g], retain), strict=True):
            if edge is not None and gi is not None:
                accumulate(edge, gi, True)

    @staticmethod
    def _gradients(node: Node, gs: list[Any], retain: bool) -> Sequence[Any]:
        held: Held = node.params["held"]
        given = {i for i, part in enumerate(gs) if part is not None}
        if given & held.used:
            node.raise_consumed()
        for i in given:
            if held.own[i]:
                check_versions(node, held.own[i])
        values = [*held.values]  # which backward empties: each is let go after its last use
        if not retain:
            held.used |= given
            if len(held.used) == len(gs):  # nobody can ask again: let go at once
                held.values = ()
                node.edges, node.versions = None, ()
        found: Sequence[Any] = node.params["backward"](values, gs)
        return found


class Held:
    """What the backward of a captured step needs, until each of its results was used.

    Results may be used one after the other, since in the step itself their graphs may be apart.

    Attributes:
        values: The arrays.
        own: For each result, the versions of the results that its gradients need.
        used: Numbers of the results whose graph was consumed.
    """

    __slots__ = ("own", "used", "values")

    def __init__(self, values: tuple[Any, ...], own: Sequence[tuple[Any, ...]]) -> None:
        self.values, self.own = values, own
        self.used: set[int] = set()


REGION = Region()


def hang(
    outputs: Sequence[Any],
    edges: tuple[Any, ...],
    versions: tuple[Any, ...],
    params: dict[str, Any],
) -> None:
    """Puts output tensors into the graph, behind one node.

    Args:
        outputs: The results with gradients.
        edges: Where their gradients go.
        versions: Of arguments and parameters that backward needs, and their numbers now.
        params: Of the node.
    """
    node = new_node(REGION, edges, params)
    node.versions = versions
    if len(outputs) == 1:
        outputs[0]._node, outputs[0]._rg = node, True
        return
    for i, t in enumerate(outputs):
        t._node, t._rg = new_node(OUTPUT_OF, (node,), {"index": i}), True


def quietly(body: Callable[..., Any], *args: Any) -> Any:
    """`body(*args)`, during which NumPy says nothing of overflow and the like."""
    if state.quiet:
        return body(*args)
    with np.errstate(all="ignore"):
        state.quiet = True
        try:
            return body(*args)
        finally:
            state.quiet = False


@functools.lru_cache(64)
def _one(dtype: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of a number by itself, which nobody changes."""
    return np.ones(shape, dtype)
