"""Fused operations: a composite as the definition, and a fast body that records one node."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import backend
from ..autograd.mode import enable_grad, state
from ..autograd.node import Node, observe
from . import primitive
from .primitive import OUT, Op, check_same_device, input_edge, new_node, version_of, wrap


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
        record = tensors = plain = False
        for x, a in zip(inputs, arrays, strict=True):
            if x is a:
                plain = plain or x is not None
                continue
            tensors = True
            if x._view is not None:
                x._sync_view()
            record = record or x._rg
        if not tensors:
            return self.forward(*arrays, **params)[0]
        if plain:
            inputs = tuple(
                [
                    wrap(x) if x is a and x is not None else x
                    for x, a in zip(inputs, arrays, strict=True)
                ]
            )
        _check_devices(self.name, inputs, arrays)
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
        edges = tuple([None if x is None else input_edge(x) for x in inputs])
        node = new_node(self, edges, params)
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
        node.saved = (*saved, *residuals)
        node.versions = tuple(versions)
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


@functools.lru_cache(256)
def _hollow_on_host(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.ndarray(shape, dtype, _ZEROS, 0, (0,) * len(shape))


def _hollow(a: Any) -> Any:
    """Zeros like `a` that take the memory of one number and cannot be written."""
    if type(a) is np.ndarray:
        return _hollow_on_host(a.shape, a.dtype)
    xp = backend.namespace(a)
    return xp.broadcast_to(xp.zeros((), a.dtype), a.shape)


def _check_devices(name: str, inputs: Sequence[Any], arrays: Sequence[Any]) -> None:
    for a in arrays:
        if type(a) is not np.ndarray and a is not None:
            check_same_device(name, [x for x in inputs if x is not None])
            return


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
