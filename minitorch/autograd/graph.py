"""Looking into the graph: nodes, hooks on what they save, hooks on several gradients at once."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, GraphError, describe
from ..ops.inplace import bump
from ..ops.primitive import edge_of
from ..tensor import Tensor
from .grad_hooks import watchers
from .handle import RemovableHandle
from .mode import state
from .node import Node
from .saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

__all__ = [
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def increment_version(tensor: Any) -> None:
    """Notes a write into the memory of a tensor that was made behind its back."""
    for t in [tensor] if isinstance(tensor, Tensor) else tensor:
        bump(t, "increment_version")


class _Handles:
    """The handles of one hook on several tensors."""

    def __init__(self, handles: Sequence[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Takes the hook out everywhere."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> Any:
    """Calls `fn` once in each backward, when gradients of several tensors are known.

    Args:
        tensors: Tensors that require grad.
        fn: With mode `"all"` it gets the list of all gradients, None for a tensor that this
            backward does not reach; with `"any"` the first gradient.
        mode: `"all"` or `"any"`.

    Returns:
        A handle; its `remove()` takes the hook out.

    Raises:
        ArgumentError: Another mode.
        GraphError: A tensor does not require grad.
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"register_multi_grad_hook: mode must be 'all' or 'any'. Got {mode!r}.")
    tensors = list(tensors)
    for t in tensors:
        if not t.requires_grad:
            raise GraphError(
                f"register_multi_grad_hook: every tensor must require grad. Got {describe(t)}."
            )
    watch = _All(tensors, fn) if mode == "all" else _Any(fn)
    return _Handles([t.register_hook(watch.hook_for(i)) for i, t in enumerate(tensors)])


class _Any:
    """Calls the function for the first gradient of a pass."""

    def __init__(self, fn: Callable[..., None]) -> None:
        self.fn = fn
        self.last: Any = None

    def hook_for(self, index: int) -> Callable[[Any], None]:
        """The hook of one tensor."""

        def hook(g: Any) -> None:
            if self.last is not state.running:
                self.last = state.running
                self.fn(g)

        return hook


class _All:
    """Collects the gradients of a pass and calls the function with the last of them."""

    def __init__(self, tensors: list[Tensor], fn: Callable[..., None]) -> None:
        self.edges = [edge_of(t) for t in tensors]
        self.fn = fn
        self.running: Any = None
        self.missing = 0
        self.grads: list[Any] = []
        watchers.add(weakref.ref(self, watchers.discard))

    def hook_for(self, index: int) -> Callable[[Any], None]:
        """The hook of one tensor."""

        def hook(g: Any) -> None:
            if self.running is not state.running:
                self.running = state.running
                self.grads = [None] * len(self.edges)
                self.missing = sum(edge in state.running.reach for edge in self.edges)
            self.grads[index] = g
            self.missing -= 1
            if not self.missing:
                grads, self.grads, self.running = self.grads, [], None
                self.fn(grads)

        return hook
