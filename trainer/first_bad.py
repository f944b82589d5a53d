"""Runs a failing batch once more, to name the operation that made the first bad value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from inspect import isgenerator
from typing import TYPE_CHECKING, Any

from minitorch import Tensor, backend, random
from minitorch.autograd.mode import note_lines
from minitorch.callbacks.core.recorded import Recorded, line_of
from minitorch.ops.primitive import OUT

if TYPE_CHECKING:
    from minitorch.autograd.node import Node
    from minitorch.trainer.trainer import Trainer


def first_bad(trainer: Trainer) -> str:
    """A sentence that names the first operation whose result is not finite; "" if none is found.

    The step runs with the random numbers that its window began with, and every operation notes its
    line. What it logs is thrown away with the window.
    """
    drawn = trainer.progress.random_before
    if drawn is not None and not trainer.position.window:
        random.load_state_dict(drawn)
    before = note_lines(True)
    try:
        batch, index = trainer.current_batch.data, trainer.position.batch
        with trainer.precision.forward_context():
            output = trainer.plan.step(batch, index)
        for loss in _losses(output):
            for node in reversed(Recorded(loss).nodes):
                culprit = _culprit(node)
                if culprit:
                    return f" The first bad value came up in {culprit}."
    except Exception:  # it failed in another way than before: the first error is the one to tell
        return ""
    finally:
        note_lines(before)
    return ""


def _losses(output: Any) -> Iterator[Tensor]:
    """The losses that a step returned or yields, by name or alone."""
    values: Iterable[Any] = output.values() if isinstance(output, Mapping) else [output]
    if isgenerator(output):
        pairs: Iterable[Any] = output
        values = (value for _, value in pairs)
    for value in values:
        if isinstance(value, Mapping):
            yield from _losses(value)
        elif isinstance(value, Tensor) and value.requires_grad:
            yield value


def _culprit(node: Node) -> str:
    """The operation that made a bad input or output of `node`, in words; "" if all are finite."""
    saves, arrays = node.op.saves, node.saved
    inputs = {}
    for position, array in zip(saves, arrays, strict=False):
        if array is None or not hasattr(array, "dtype"):
            continue
        if not _bad(array):
            inputs[position] = array
            continue
        if position == OUT:
            return f"{node.op.name}{line_of(node)}"
        source: Any = (node.edges or ())[position]
        if source is None or isinstance(source, Tensor):
            what = "a constant or the batch" if source is None else "a parameter"
            return f"{what}, an input of {node.op.name}{line_of(node)}"
        return f"{source.op.name}{line_of(source)}"
    forward = getattr(node.op, "forward", None)
    if forward is None or sorted(inputs) != list(range(len(node.edges or ()))):
        return ""
    made = forward(*[inputs[i] for i in sorted(inputs)], **node.params)
    made = made[0] if isinstance(made, tuple) else made
    return f"{node.op.name}{line_of(node)}" if _bad(made) else ""


def _bad(array: Any) -> bool:
    if getattr(array, "dtype", None) is None or array.dtype.kind not in "fV":
        return False
    xp = backend.namespace(array)
    return not bool(xp.isfinite(array.astype("float64")).all())
