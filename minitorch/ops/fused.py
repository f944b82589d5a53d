"""Fused operations: a composite as the definition, and a fast body that records one node."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import backend
from ..autograd.mode import enable_grad, state
from ..autograd.node import Node, observe
from . import primitive
from .primitive import OUT, Op, check_same_device, input_edge, new_node, save, wrap


class Fused(Op):
    """A composite with a fast forward and backward.

    The definition is what the operation means. It runs where the fast body does not apply, it is
    differentiated for gradients of higher order, and the fast body is tested against it.

    Args:
        definition: `definition(*inputs, **params)` made of operations; positional parameters are
            Tensors (or None where the default is None), the rest is keyword-only.
        forward: `forward(*arrays, **params)` to `(out, residuals)`, a tuple of what backward needs.
        backward: `backward(g, needs, residuals, *arrays, **params)` to one gradient per input;
            `needs[i]` is False where none is wanted. It returns arrays of its own: never `g`
            changed in place, never an input.
        supports: `supports(*arrays, **params)` says whether the fast body applies.
        saves_out: The output comes first among the residuals, protected against later writes.
        bilinear: The first two inputs are multiplied with each other and the others added, so that
            each gradient needs at most the other factor; what no gradient needs is not kept.
    """

    def __init__(
        self,
        definition: Callable[..., Any],
        forward: Callable[..., tuple[Any, tuple[Any, ...]]],
        backward: Callable[..., Sequence[Any]],
        *,
        supports: Callable[..., bool],
        saves_out: bool = False,
        bilinear: bool = False,
    ) -> None:
        self.name = definition.__name__.lstrip("_")
        self.definition = definition
        self.forward = forward
        self.fast_backward = backward
        self.supports = supports
        self.bilinear = bilinear
        kinds = inspect.signature(definition).parameters.values()
        self.arity = sum(p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in kinds)
        self.saves = tuple(range(self.arity)) + ((OUT,) if saves_out else ())

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Computes the operation; inputs left out at the end are None."""
        if len(inputs) < self.arity:
            inputs += (None,) * (self.arity - len(inputs))
        arrays = [getattr(x, "_array", x) for x in inputs]
        if not self.supports(*arrays, **params):
            return self.definition(*inputs, **params)
        tensors = [x for x in inputs if isinstance(x, primitive.Tensor)]
        if not tensors:
            return self.forward(*arrays, **params)[0]
        inputs = tuple(
            [x if x is None or isinstance(x, primitive.Tensor) else wrap(x) for x in inputs]
        )
        check_same_device(self.name, tensors)
        y, residuals = self.forward(*arrays, **params)
        out = wrap(y)
        record = False
        for t in tensors:
            if t._view is not None:
                t._sync_view()
            record = record or t._rg
        if record and state.recording:
            self._record(out, inputs, arrays, residuals, params)
        if primitive.tape is not None:
            primitive.tape.note_fused(self, out, arrays, inputs, residuals, params)
        return out

    def _record(
        self, out: Any, inputs: Any, arrays: list[Any], residuals: Any, params: dict[str, Any]
    ) -> None:
        edges = tuple([input_edge(x) if isinstance(x, primitive.Tensor) else None for x in inputs])
        node = new_node(self, edges, params)
        if self.bilinear and (edges[0] is None or edges[1] is None):
            unneeded = {2} | {1 - i for i in (0, 1) if edges[i] is None}
            inputs = [
                _hollow(x) if i in unneeded and x is not None else x for i, x in enumerate(inputs)
            ]
            arrays = [getattr(x, "_array", None) for x in inputs]
        save(node, self, inputs, arrays, out)
        node.saved += residuals
        if state.recording > 1:
            observe(node)
        out._node = node
        out._rg = True

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """The fast gradients on arrays; on Tensors, the gradients of the definition."""
        n = self.arity
        assert node.edges is not None
        needs = [edge is not None for edge in node.edges]
        if isinstance(g, primitive.Tensor):
            return _differentiate(self.definition, g, needs, saved[:n], node.params)
        return self.fast_backward(g, needs, saved[n:], *saved[:n], **node.params)


_ZEROS = bytes(16)


def _hollow(x: Any) -> Any:
    """A Tensor of zeros like `x` that takes the memory of one number."""
    a = x._array
    if type(a) is np.ndarray:
        return wrap(np.ndarray(a.shape, a.dtype, _ZEROS, 0, (0,) * a.ndim))
    xp = backend.namespace(a)
    return wrap(xp.broadcast_to(xp.zeros((), a.dtype), a.shape))


def _differentiate(
    definition: Callable[..., Any],
    g: Any,
    needs: Sequence[bool],
    inputs: Sequence[Any],
    params: dict[str, Any],
) -> list[Any]:
    """The gradients of `definition` at `inputs`, with a graph of their own."""
    from ..autograd.engine import grad

    with enable_grad():
        fresh = [x + 0 if needed else x for x, needed in zip(inputs, needs, strict=True)]
        y = definition(*fresh, **params)
        wanted = [x for x, needed in zip(fresh, needs, strict=True) if needed]
        found = iter(grad(y, wanted, g, create_graph=True, allow_unused=True))
    return [next(found) if needed else None for needed in needs]
