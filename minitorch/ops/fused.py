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
        arrays: list[Any] = []
        record = tensors = plain = on_device = False
        for x in inputs:
            a = getattr(x, "_array", x)
            arrays.append(a)
            if a is None:
                continue
            on_device = on_device or type(a) is not ndarray
            if a is x:
                plain = True
                continue
            tensors = True
            if x._view is not None:
                x._sync_view()
            record = record or x._rg
        if not self.supports(*arrays, **params):
            return self.definition(*inputs, **params)
        if not tensors:
            return self.forward(*arrays, **params)[0]
        if plain:
            tensor = primitive.Tensor
            inputs = tuple([x if x is None or isinstance(x, tensor) else wrap(x) for x in inputs])
        if on_device:
            check_same_device(self.name, [x for x in inputs if x is not None])
        y, residuals = self.forward(*arrays, **params)
        out = wrap(y)
        if record and state.recording:
            self._record(out, inputs, arrays, residuals, params)
        if primitive.tape is not None:
            primitive.tape.note_fused(self, out, arrays, inputs, residuals, params)
        return out

    def _record(
        self, out: Any, inputs: Any, arrays: list[Any], residuals: Any, params: dict[str, Any]
    ) -> None:
        edges: list[Any] = []
        for x in inputs:
            if x is None:
                edges.append(None)
            elif x._node is None:
                edges.append(x if x._rg else None)
            else:
                edges.append(input_edge(x))
        saved: list[Any] = []
        versions: list[Any] = []
        for i, x in enumerate(inputs):
            if x is None:
                saved.append(None)
            elif self.bilinear and (i == 2 or (i < 2 and edges[1 - i] is None)):
                saved.append(_hollow(arrays[i]))
            else:
                version = x._version
                if version is None:
                    version = x._version = [0, "", 0]
                saved.append(arrays[i])
                versions += (version, version[0])
        if OUT in self.saves:
            version = version_of(out)
            saved.append(out._array)
            versions += (version, version[0])
        node = _new(Node)
        node.op, node.params = self, params
        node.edges = tuple(edges)
        node.saved = (*saved, *residuals)
        node.versions = tuple(versions)
        node.shapes = node.meta = None
        node.sequence = next_sequence()
        if state.recording > 1:
            observe(node)
        out._node = node
        out._rg = True

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
