"""The gradients that backward starts with: those that were given, and 1 for a loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..errors import DtypeError, GraphError, ShapeError, describe
from ..ops import primitive
from ..ops.primitive import as_seen, cast


def seeds(tensors: list[Any], given: list[Any] | None, name: str) -> list[Any]:
    """The gradient that each output starts with: arrays, or Tensors that have a graph.

    Args:
        tensors: The outputs.
        given: For each a Tensor, or None where it is 1; None if all are.
        name: Of the caller, for messages.

    Raises:
        GraphError: An output has no graph, or no gradient is implied for it.
        DtypeError: It is not floating.
        ShapeError: A gradient has another shape than its output.
    """
    if given is None:
        return [_implied(t, name) for t in tensors]
    if len(given) != len(tensors):
        raise GraphError(
            f"{name}: one gradient is needed per output. Got {len(given)} for {len(tensors)}."
        )
    out: list[Any] = []
    for t, g in zip(tensors, given, strict=True):
        if g is None:
            out.append(_implied(t, name))
            continue
        if not t.requires_grad:
            _raise_no_graph(t, name)
        if g._array.shape != t._array.shape:
            raise ShapeError(
                f"{name}: a gradient must have the shape of its output. "
                f"Got {describe(g)} for {describe(t)}."
            )
        primitive.check_same_device(name, [t, g])
        out.append(as_seen(g if g.requires_grad else cast(g._array, t._array.dtype)))
    return out


def _raise_no_graph(t: Any, name: str) -> None:
    raise GraphError(
        f"{name}: {describe(t)} has no graph: no tensor that it came from requires grad, "
        "or it was computed under no_grad or detached. Check requires_grad of the inputs."
    )


def _implied(t: Any, name: str) -> Any:
    """The gradient 1 of an output that is one number."""
    if not t.requires_grad:
        _raise_no_graph(t, name)
    array, kind = t._array, t._array.dtype.kind
    if type(array) is np.ndarray and array.size == 1 and kind == "f":
        return np.array(1, array.dtype).reshape(array.shape)  # quicker than np.ones
    if array.size != 1:
        raise GraphError(
            f"{name}: a gradient is implied only for one-element tensors. "
            f"Got {describe(t)}. Call .sum() or .mean() first, or pass the gradient."
        )
    if kind in "iub":
        raise DtypeError(f"{name}: {describe(t)} is not differentiable. Use a float.")
    if kind == "c":
        raise GraphError(
            f"{name}: a gradient is implied only for real outputs. Got {describe(t)}. "
            "Take .abs(), .real or .imag first, or pass the gradient."
        )
    return backend.namespace(array).ones_like(array)
