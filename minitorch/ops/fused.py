"""Fused operations: a composite as the definition, and a fast body that records one node."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import backend
from ..autograd.mode import enable_grad, state
from ..autograd.node import Node, next_sequence, observe
from . import primitive
from .primitive import OUT, Op, check_same_device, input_edge, version_of, wrap

ndarray = np.ndarray
_new = object.__new__


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
        supports: `supports(*arrays, **params)` says whether the fast body applies; None: always.
        saves_out: The output comes first among the residuals, protected against later writes.
        adds_onto: The function `backward` takes `onto=`, an array like the first input or None, and
            adds it to the gradient of that input, rounded as on its own.
        bilinear: The first two inputs are multiplied with each other and the others added, so that
            each gradient needs at most the other factor; what no gradient needs is not kept.
    """

    def __init__(
        self,
        definition: Callable[..., Any],
        forward: Callable[..., tuple[Any, tuple[Any, ...]]],
        backward: Callable[..., Sequence[Any]],
        *,
        supports: Callable[..., bool] | None = None,
        saves_out: bool = False,
        adds_onto: bool = False,
        bilinear: bool = False,
    ) -> None:
        self.name = definition.__name__.lstrip("_")
        self.definition = definition
        self.forward = forward
        self.fast_backward = backward
        self.supports = supports
        self.adds_onto = adds_onto
        self.bilinear = bilinear
        self.saves_out = saves_out
        kinds = inspect.signature(definition).parameters.values()
        self.arity = sum(p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in kinds)
        self.saves = tuple(range(self.arity)) + ((OUT,) if saves_out else ())

    def __call__(self, *inputs: Any, **params: Any) -> Any:
        """Computes the operation; inputs left out at the end are None."""
        if len(inputs) < self.arity:
            inputs += (None,) * (self.arity - len(inputs))
        try:
            arrays = [None if x is None else x._array for x in inputs]
        except AttributeError:
            return self._of_arrays(inputs, params)
        record = False
        for x in inputs:
            if x is not None:
                if x._view is not None:
                    x._sync_view()
                if x._rg:
                    record = True
        supports = self.supports
        if supports is not None and not supports(*arrays, **params):
            return self.definition(*inputs, **params)
        if not _ON_HOST.issuperset(map(type, arrays)):
            check_same_device(self.name, [x for x in inputs if x is not None])
        y, residuals = self.forward(*arrays, **params)
        out = wrap(y)
        if record and state.recording:
            self._record(out, inputs, arrays, residuals, params)
        if primitive.tape is not None:
            primitive.tape.note_fused(self, out, arrays, inputs, residuals, params)
        return out

    def _of_arrays(self, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
        """The operation on raw arrays; a Tensor among them makes the result one."""
        tensor = primitive.Tensor
        if any(isinstance(x, tensor) for x in inputs):
            wrapped = [x if x is None or isinstance(x, tensor) else wrap(x) for x in inputs]
            return self(*wrapped, **params)
        if self.supports is not None and not self.supports(*inputs, **params):
            return self.definition(*inputs, **params)
        return self.forward(*inputs, **params)[0]

    def _record(
        self, out: Any, inputs: Any, arrays: list[Any], residuals: Any, params: dict[str, Any]
    ) -> None:
        edges: list[Any] = []
        versions: list[Any] = []
        saved = [*arrays, *residuals]
        unneeded = (not inputs[1]._rg, not inputs[0]._rg, True) if self.bilinear else None
        for i, x in enumerate(inputs):
            if x is None:
                edges.append(None)
                continue
            edges.append(input_edge(x) if x._node is not None else x if x._rg else None)
            if unneeded is not None and unneeded[i]:
                if x._node is not None or not x._rg:  # a leaf lives as long as the node anyway
                    saved[i] = _hollow(arrays[i])
                continue
            version = x._version
            if version is None:
                version = x._version = [0, "", 0]
            versions += (version, version[0])
        if self.saves_out:
            saved.insert(self.arity, out._array)
            versions += (version_of(out), 0)
        node = _new(Node)
        node.op, node.params = self, params
        node.edges, node.saved, node.versions = tuple(edges), tuple(saved), tuple(versions)
        node.shapes = node.meta = None
        node.sequence = next_sequence()
        if state.recording > 1:
            observe(node)
        out._node = node
        out._rg = True

    def backward_onto(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """As `backward`, with the first gradient added to what has flowed there, if it can be."""
        n, (edge, *_), x, flow = self.arity, node.edges or (), saved[0], state.running
        before = flow.pending.get(edge) if node.meta is None else None
        if type(before) is not ndarray or before.shape != x.shape or before.dtype != x.dtype:
            return self.backward(node, g, saved)
        needs = self.needs(node)
        total, *others = self.fast_backward(
            g, needs, saved[n:], *saved[:n], onto=before, **node.params
        )
        flow.pending[edge] = total
        flow.summed.add(edge)
        flow.fresh.add(edge)
        return (None, *others)

    def backward(self, node: Node, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """The fast gradients on arrays; on Tensors, the gradients of the definition."""
        n = self.arity
        if isinstance(g, primitive.Tensor):
            needs = [edge is not None for edge in node.edges or ()]
            return _differentiate(self.definition, g, needs, saved[:n], node.params)
        return self.fast_backward(g, self.needs(node), saved[n:], *saved[:n], **node.params)

    def needs(self, node: Node) -> list[bool]:
        """Which gradients the fast backward is to compute."""
        edges: Any = node.edges
        return [edge is not None for edge in edges]


_ON_HOST = frozenset((ndarray, type(None)))
_ZEROS = bytes(16)


@functools.lru_cache(256)
def _hollow_on_host(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.ndarray(shape, dtype, _ZEROS, 0, (0,) * len(shape))


def _hollow(a: Any) -> Any:
    """Zeros like `a` that take the memory of one number and cannot be written."""
    if type(a) is np.ndarray:
        return _hollow_on_host(a.shape, a.dtype)
    xp = backend.namespace(a)
    return xp.broadcast_to(xp.zeros((), a.dtype), a.shape)


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
