"""Hooks on what operations save for backward: packed when it is saved, unpacked when it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import backend
from ..errors import GraphError, describe
from .mode import recording_level, state
from .node import Node


class saved_tensors_hooks:
    """Inside, `pack_hook(tensor)` gets what an operation saves, and backward gets
    `unpack_hook(packed)` in its place.

    Args:
        pack_hook: From a tensor to anything. It must not change the tensor.
        unpack_hook: From that to a tensor of the same shape, dtype and values.

    Raises:
        GraphError: Entered inside of `disable_saved_tensors_hooks`.
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self._pair = (pack_hook, unpack_hook)

    def __enter__(self) -> Any:
        if _disabled:
            raise GraphError(_disabled[-1])
        state.saved_hooks = (*state.saved_hooks, self._pair)
        state.recording = recording_level(state.recording > 0)

    def __exit__(self, *exc: Any) -> None:
        state.saved_hooks = state.saved_hooks[:-1]
        state.recording = recording_level(state.recording > 0)


class save_on_cpu(saved_tensors_hooks):
    """Inside, what operations save for backward is kept in the memory of the host.

    Args:
        pin_memory: Accepted for PyTorch's signature.
        device_type: Accepted for PyTorch's signature.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(
            lambda t: (t.device, t.detach().cpu()), lambda packed: packed[1].to(packed[0])
        )


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Inside, operations save copies, so that what they saved may be changed in place later."""

    def __init__(self) -> None:
        super().__init__(lambda t: t.detach().clone(), lambda t: t)

    def __enter__(self) -> Any:
        super().__enter__()
        return self


_disabled: list[str] = []


class disable_saved_tensors_hooks:
    """Inside, `saved_tensors_hooks` raises an error with this message.

    Args:
        error_message: Text of the error.
    """

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def __enter__(self) -> None:
        if state.saved_hooks:
            raise GraphError(self.error_message)
        _disabled.append(self.error_message)

    def __exit__(self, *exc: Any) -> None:
        _disabled.pop()


class Packed:
    """What a pack hook made of a saved array."""

    __slots__ = ("dtype", "payload", "shape", "unpack")

    def __init__(self, t: Any) -> None:
        pack, self.unpack = state.saved_hooks[-1]
        before = state.recording
        state.recording = 0
        try:
            self.payload = pack(t)
        finally:
            state.recording = before
        self.shape, self.dtype = t._array.shape, t._array.dtype

    def shares(self, array: Any) -> bool:
        """True if the hook kept the memory itself, so that writes to it still matter."""
        return getattr(self.payload, "_array", None) is array

    def unpacked(self) -> Any:
        """The array again.

        Raises:
            GraphError: The hook returned something else.
        """
        t = self.unpack(self.payload)
        array = getattr(t, "_array", None)
        if array is None or array.shape != self.shape or array.dtype != self.dtype:
            raise GraphError(
                "saved_tensors_hooks: unpack_hook must return a tensor like the one that was "
                f"packed, {self.dtype}{list(self.shape)}. Got {describe(t)}."
            )
        return array


def pack_node(node: Any) -> None:
    """Packs what `node` saves, with the innermost hooks; what is packed already stays so."""
    from ..ops.primitive import OUT, wrap

    edges, saves, keeps = node.edges, node.op.saves, False
    packed: list[Any] = []
    for i, array in enumerate(node.saved):
        if isinstance(array, Packed) or not backend.is_array(array):
            packed.append(array)
            continue
        position = saves[i] if i < len(saves) else OUT
        leaf = edges[position] if position != OUT else None
        known = leaf if getattr(leaf, "_array", None) is array else wrap(array)
        packed.append(Packed(known))
        keeps = keeps or packed[-1].shares(array)
    node.saved = tuple(packed)
    node.meta = {**(node.meta or {}), "packed": True}
    if not keeps:
        node.versions = ()


class PackedTensor:
    """A Tensor that a Function saved, packed, with its place in the graph."""

    def __init__(self, t: Any, edge: Any) -> None:
        self.packed, self.edge = Packed(t), edge
        self.keeps = self.packed.shares(t._array)

    def __call__(self, node: Any) -> Any:
        """The Tensor in the graph."""
        from ..ops.primitive import wrap
        from .reconnected import connected

        array = self.packed.unpacked()
        edge = self.edge(node) if callable(self.edge) else self.edge
        if edge is None:
            return wrap(array)
        if type(edge) is Node:
            t = wrap(array)
            t._node, t._rg = edge, True
            return t
        return edge if getattr(edge, "_array", None) is array else connected(array, edge)
