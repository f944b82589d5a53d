"""Custom operations: a forward and a backward written by the user."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from .. import backend
from ..errors import GraphError, describe
from ..ops import primitive
from ..ops.inplace import rebase
from ..ops.primitive import (
    Op,
    as_seen,
    edge_of,
    input_edge,
    new_node,
    shares_memory,
    version_of,
    wrap,
)
from .engine import OUTPUT_OF
from .mode import no_grad, recording_level, state
from .saved import PackedTensor


class FunctionCtx:
    """What forward leaves for backward: saved tensors and any attribute.

    Attributes:
        needs_input_grad: For each input of forward, whether its gradient is wanted.
        saved_tensors: What `save_for_backward` got, checked against later writes.
    """

    needs_input_grad: tuple[bool, ...]

    def __init__(self) -> None:
        self._to_save: tuple[Any, ...] = ()
        self._node: Any = None  # a weak reference: the node holds this object
        self._not_differentiable: set[int] = set()
        self._dirty: list[Any] = []
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps Tensors (or None) for backward, where they are `saved_tensors`."""
        for t in tensors:
            if t is not None and not isinstance(t, primitive.Tensor):
                raise GraphError(
                    f"save_for_backward: only tensors can be saved. Got {type(t).__name__}. "
                    "Set other values as attributes of ctx."
                )
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved Tensors.

        Raises:
            GraphError: One was changed in place since, or the graph was consumed.
        """
        node = None if self._node is None else self._node()
        if node is None:
            return self._to_save
        if node.edges is None:
            node.raise_consumed()
        node.check_versions()
        return tuple(
            x(node) if isinstance(x, _SavedOutput | PackedTensor) else x for x in self._to_save
        )

    saved_variables = saved_tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Accepted for PyTorch's forward mode, which computes by two backward passes here."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Declares inputs that forward changed in place and returns."""
        self._dirty = list(tensors)

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Declares outputs that have no gradient."""
        self._not_differentiable = {id(t) for t in tensors}

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros instead of None for outputs without gradient."""
        self._materialize = value


class _SavedOutput:
    """An output that forward saved, without the cycle that keeping the Tensor would make."""

    def __init__(self, t: Any, index: int | None) -> None:
        self.array, self.version, self.index = t._array, version_of(t), index

    def source(self, node: Any) -> Any:
        """The node that the output comes from."""
        return node if self.index is None else _output(node, self.index)

    def __call__(self, node: Any) -> Any:
        """The output as a Tensor in the graph."""
        t = wrap(self.array)
        t._version, t._rg = self.version, True
        t._node = self.source(node)
        return t


class _CustomOp(Op):
    """The graph's side of a Function class."""

    owns_gradients = False

    def __init__(self, cls: type[Function]) -> None:
        self.cls = cls
        self.name = cls.__name__

    def backward(self, node: Any, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """Runs the user's backward on Tensors and checks what it returns."""
        ctx = node.params["ctx"]
        given = g if isinstance(g, list) else [g]
        on_tensors = any(isinstance(x, primitive.Tensor) for x in given)
        grads = [
            _received(x, like, ctx._materialize)
            for x, like in zip(given, node.params["like"], strict=True)
        ]
        before = state.recording
        state.recording = recording_level(on_tensors)
        try:
            results = self.cls.backward(ctx, *grads)
        finally:
            state.recording = before
        results = results if isinstance(results, tuple) else (results,)
        return self._checked(node, results, on_tensors)

    def _checked(self, node: Any, results: tuple[Any, ...], on_tensors: bool) -> list[Any]:
        positions = node.params["positions"]
        extra = results[node.params["arity"] :]
        if len(results) < node.params["arity"] or any(x is not None for x in extra):
            raise GraphError(
                f"{self.name}.backward: one gradient per input of forward is needed, "
                f"{node.params['arity']}. Got {len(results)}. Return None where there is none."
            )
        out: list[Any] = []
        for i, shape in zip(positions, node.params["shapes"], strict=True):
            g = results[i]
            if g is not None and not isinstance(g, primitive.Tensor):
                raise GraphError(
                    f"{self.name}.backward: gradients must be Tensors. Got {type(g).__name__} "
                    f"for input {i}."
                )
            if g is not None and g._array.shape != shape:
                raise GraphError(
                    f"{self.name}.backward: the gradient of input {i} must have its shape "
                    f"{shape}. Got {describe(g)}."
                )
            out.append(g if g is None else as_seen(g if on_tensors else g._array))
        return out


def _received(g: Any, like: Any, materialize: bool) -> Any:
    if g is None:
        if not materialize:
            return None
        shape, dtype, where = like
        return wrap(backend.get(where.type).xp.zeros(shape, dtype=dtype))
    return as_seen(g if isinstance(g, primitive.Tensor) else wrap(g))


class Function:
    """A custom operation.

    Subclass it with static methods `forward(ctx, *inputs)` and `backward(ctx, *grads)`, or with
    `forward(*inputs)` and `setup_context(ctx, inputs, output)`, and call it by `apply`.

    >>> class Exp(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         y = x.exp()
    ...         ctx.save_for_backward(y)
    ...         return y
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (y,) = ctx.saved_tensors
    ...         return g * y
    """

    _op: _CustomOp
    setup_context: Callable[..., None] | None = None

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The values; written by the subclass."""
        raise NotImplementedError("Function: write a static method forward(ctx, *inputs).")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """The gradients; written by the subclass."""
        raise NotImplementedError("Function: write a static method backward(ctx, *grads).")

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """Computes forward and records the operation."""
        ctx = FunctionCtx()
        tensors = [(i, x) for i, x in enumerate(inputs) if isinstance(x, primitive.Tensor)]
        for _, x in tensors:
            if x._view is not None:
                x._sync_view()
        ctx.needs_input_grad = tuple(isinstance(x, primitive.Tensor) and x._rg for x in inputs)
        recorded = bool(state.recording) and any(ctx.needs_input_grad)
        with no_grad():
            if cls.setup_context is not None:
                output = cls.forward(*inputs)
                cls.setup_context(ctx, inputs, output)
            else:
                output = cls.forward(ctx, *inputs)
        return _record(cls, ctx, inputs, tensors, output) if recorded else output


def _record(cls: type[Function], ctx: FunctionCtx, inputs: Any, tensors: Any, output: Any) -> Any:
    """Connects the outputs of `cls.forward` with its inputs."""
    outputs = list(output) if isinstance(output, tuple) else [output]
    if "_op" not in cls.__dict__:
        cls._op = _CustomOp(cls)
    like = [(x._array.shape, x._array.dtype, x.device) for x in outputs]
    params = {
        "ctx": ctx,
        "arity": len(inputs),
        "positions": [i for i, _ in tensors],
        "shapes": [x._array.shape for _, x in tensors],
        "like": like,
        "outputs": len(outputs),
    }
    node = new_node(cls._op, tuple(input_edge(x) for _, x in tensors), params)
    kept = [x for x in ctx._to_save if x is not None]
    node.saved = tuple(x._array for x in kept)
    node.versions = tuple(v for x in kept for v in (version_of(x), version_of(x)[0]))
    several = isinstance(output, tuple)
    results: list[Any] = []
    saved: dict[int, Any] = {}
    for i, x in enumerate(outputs):
        if id(x) in ctx._not_differentiable or x._array.dtype.kind in "iub":
            results.append(x)
            continue
        source = _output(node, i) if several else node
        out = _connected(x, source, [y for _, y in tensors], ctx._dirty)
        saved[id(x)] = _SavedOutput(out, i if several else None)
        results.append(out)
    ctx._to_save = tuple(saved.get(id(x), x) for x in ctx._to_save)
    if state.saved_hooks and kept:
        ctx._to_save = tuple(_packed(x) for x in ctx._to_save)
        node.saved = tuple(x for x in ctx._to_save if x is not None)
        if not any(isinstance(x, PackedTensor) and x.keeps for x in node.saved):
            node.versions = ()
    ctx._node = weakref.ref(node)
    return tuple(results) if several else results[0]


def _packed(x: Any) -> Any:
    """A saved input or output, packed by the hooks around the call."""
    if x is None:
        return None
    if isinstance(x, _SavedOutput):
        return PackedTensor(wrap(x.array), x.source)
    return PackedTensor(x, edge_of(x))


def _connected(x: Any, source: Any, inputs: list[Any], dirty: list[Any]) -> Any:
    """The output `x` of forward as a Tensor whose history is `source`."""
    if any(x is y for y in inputs) and any(x is y for y in dirty):
        rebase(x, source)
        return x
    # An output that looks into the memory of an input could be written without its knowing.
    shared = any(shares_memory(x._array, y._array) for y in inputs)
    out = wrap(x._array.copy() if shared else x._array)
    if not shared:
        out._version = version_of(x)
    out._rg, out._node = True, source
    return out


def _output(owner: Any, index: int) -> Any:
    return new_node(OUTPUT_OF, (owner,), {"index": index})


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a Function's backward as having no derivative of its own."""

    @functools.wraps(backward)
    def call(ctx: Any, *grads: Any) -> Any:
        recorded = state.recording > 0
        with no_grad():
            results = backward(ctx, *grads)
        if not recorded:
            return results
        listed = results if isinstance(results, tuple) else (results,)
        edges = tuple(edge_of(g) for g in grads if isinstance(g, primitive.Tensor))
        node = new_node(_ONCE, edges or (None,), {})
        node.saved = (None,)
        return tuple(_ending(g, node) if isinstance(g, primitive.Tensor) else g for g in listed)

    return call


def _ending(g: Any, node: Any) -> Any:
    """A gradient that cannot be differentiated again, and says so where that is tried."""
    out = wrap(g._array)
    out._node, out._rg = node, True
    return out


class _Once(Op):
    """The backward of a Function that was declared to have no derivative."""

    name = "once_differentiable"

    def backward(self, node: Any, g: Any, saved: Sequence[Any]) -> Sequence[Any]:
        """Raises: there is no derivative."""
        raise GraphError(
            "backward: this Function's backward was declared once_differentiable and cannot be "
            "differentiated again. Write it with differentiable operations and drop the decorator."
        )


_ONCE = _Once()
