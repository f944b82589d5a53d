"""Several: an operation of one array with several outputs, such as a decomposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.engine import OUTPUT_OF
from ..autograd.mode import state
from ..autograd.node import Node
from . import primitive
from .primitive import Op, as_seen, input_edge, new_node, raw, version_of, wrap


class Several(Op):
    """An operation with a forward body that gives several arrays, and one joint gradient rule.

    For gradients of higher order the outputs are computed again, as Tensors with a graph.

    Args:
        name: The name in messages and in `grad_fn`.
        forward: `forward(array, **params)` to a tuple of arrays.
        rule: `rule(grads, outputs, **params)` to the gradient of the input; `grads` holds None for
            outputs without one. It reads as in a textbook: gradients are `∂L/∂x + i ∂L/∂y`.
    """

    saves = (0,)

    def __init__(
        self, name: str, forward: Callable[..., tuple[Any, ...]], rule: Callable[..., Any]
    ) -> None:
        self.name = name
        self.forward = forward
        self.rule = rule

    def __call__(self, x: Any, **params: Any) -> tuple[Any, ...]:
        """The outputs for a Tensor, recorded."""
        arrays = self.forward(x._array, **params)
        outputs = tuple([wrap(a) for a in arrays])
        if x._view is not None:
            x._sync_view()
        if not (x._rg and state.recording):
            return outputs
        node = new_node(self, (input_edge(x),), {**params, "outputs": len(outputs)})
        kept = [x, *outputs]
        node.saved = (x._array, *arrays)
        node.versions = tuple(v for t in kept for v in (version_of(t), version_of(t)[0]))
        for i, t in enumerate(outputs):
            t._node, t._rg = new_node(OUTPUT_OF, (node,), {"index": i}), True
        return outputs

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """The joint rule on arrays, or on Tensors for a graph of its own."""
        params = {name: value for name, value in node.params.items() if name != "outputs"}
        x, outputs = saved[0], tuple(saved[1:])
        if any(isinstance(gi, primitive.Tensor) for gi in g):
            outputs = self(x, **params)
        seen = [None if gi is None else as_seen(gi) for gi in g]
        found = self.rule(seen, outputs, **params)
        if raw(found).dtype.kind == "c" and raw(x).dtype.kind != "c":
            found = found.real
        return (as_seen(found),)
