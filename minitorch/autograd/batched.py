"""`grad` for several gradients of the outputs at once."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError, describe
from ..ops.joining import stack
from .engine import grad


def grad_batched(
    outputs: list[Any],
    inputs: list[Any],
    grad_outputs: Any,
    retain_graph: bool | None,
    **options: Any,
) -> tuple[Any, ...]:
    """The gradients for each row of `grad_outputs`, stacked.

    Raises:
        ShapeError: The first axes of `grad_outputs` differ or are empty.
    """
    batches = [grad_outputs] if hasattr(grad_outputs, "_array") else list(grad_outputs)
    sizes = {len(g) for g in batches if g is not None}
    if len(sizes) != 1 or 0 in sizes:
        raise ShapeError(
            "grad: with is_grads_batched every gradient needs a first axis of one length above 0. "
            f"Got {[describe(g) for g in batches]}."
        )
    n, rows = sizes.pop(), []
    for i in range(n):
        retain = True if i < n - 1 else retain_graph
        some = [None if g is None else g[i] for g in batches]
        rows.append(grad(outputs, inputs, some, retain, **options))
    return tuple(None if row[0] is None else stack(row) for row in zip(*rows, strict=True))
