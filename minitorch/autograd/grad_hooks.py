"""How backward calls the hooks that users hang on tensors and nodes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import GraphError, ShapeError, describe
from ..ops.primitive import as_seen, wrap

# Hooks on several gradients; while there is one, a pass notes beforehand what it will reach.
watchers: set[weakref.ref[Any]] = set()


class AfterAccumulation:
    """A hook of a leaf that runs once its `.grad` is up to date."""

    def __init__(self, call: Callable[[Any], None]) -> None:
        self.call = call


def run_hook(hook: Callable[[Any], Any], g: Any, create_graph: bool) -> Any:
    """Shows `g` to a user's hook; what it returns takes the place of `g`."""
    seen = as_seen(g if create_graph else wrap(g))
    result = hook(seen)
    if result is None:
        return g
    if describe(result) != describe(seen):
        raise ShapeError(
            "hook: a replaced gradient must keep its shape and dtype. "
            f"Got {describe(result)} for {describe(seen)}. Return a tensor like the one received, "
            "or None."
        )
    return as_seen(result if create_graph else result._array)


def run_node_hook(
    hook: Callable[..., Any], gradients: Sequence[Any], g: Any, create_graph: bool
) -> Sequence[Any]:
    """Shows the gradients of a node's inputs to a hook; what it returns takes their place."""

    def shown(values: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(
            x if x is None else as_seen(x if hasattr(x, "_array") else wrap(x)) for x in values
        )

    result = hook(shown(gradients), shown(g if isinstance(g, list) else [g]))
    if result is None:
        return gradients
    result = result if isinstance(result, tuple) else (result,)
    if len(result) != len(gradients):
        raise GraphError(
            f"hook: one gradient for each input of the node is needed, {len(gradients)}. "
            f"Got {len(result)}. Return None to keep them."
        )
    return [x if x is None else as_seen(x if create_graph else x._array) for x in result]
