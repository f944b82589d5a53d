"""Batches as trees: lists, tuples, named tuples, dicts and data classes of arrays and tensors."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from minitorch import Tensor, backend
from minitorch.errors import DataError, describe

FIX = (
    "Pass batch_size=n to self.log, n being the samples behind the value, or return "
    '{"loss": loss, "count": n} from training_step, n being the samples that the loss is a mean of.'
)


def map_leaves(value: Any, fn: Callable[[Any], Any]) -> Any:
    """The same structure with `fn` applied to every tensor and array; other leaves stay.

    Args:
        value: A tensor, an array, or containers of them.
        fn: Called with each tensor and array.

    Returns:
        New containers of the same kinds.
    """
    if isinstance(value, Tensor) or backend.is_array(value):
        return fn(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[map_leaves(item, fn) for item in value])
    if isinstance(value, list | tuple):
        return type(value)([map_leaves(item, fn) for item in value])
    if isinstance(value, Mapping):
        items = {key: map_leaves(item, fn) for key, item in value.items()}
        rebuild: Any = type(value)
        if isinstance(value, defaultdict):
            return rebuild(value.default_factory, items)
        return items if rebuild is dict else rebuild(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: map_leaves(getattr(value, field.name), fn)
            for field in dataclasses.fields(value)
            if field.init
        }
        return dataclasses.replace(value, **changes)
    return value


def leaves(value: Any) -> Iterator[Any]:
    """All tensors and arrays in a tree, depth first."""
    if isinstance(value, Tensor) or backend.is_array(value):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from leaves(getattr(value, field.name))


def batch_size(batch: Any, *, who: str = "batch size", fix: str = FIX) -> int:
    """Samples in a batch: the first axis that all its tensors share.

    Args:
        batch: Containers of tensors.
        who: Who needs it, in the message.
        fix: What helps, in the message.

    Raises:
        DataError: There is no tensor with an axis, or their first axes differ.
    """
    if type(batch) in (tuple, list) and batch and type(batch[0]) is Tensor:
        first = batch[0]._array.shape[:1]  # the usual batch, without the walk
        for item in batch:
            if type(item) is not Tensor or item._array.shape[:1] != first:
                break
        else:
            if first:
                return int(first[0])
    found = [leaf for leaf in leaves(batch) if leaf.ndim]
    sizes = {leaf.shape[0] for leaf in found}
    if len(sizes) == 1:
        return int(sizes.pop())
    if not sizes:
        raise DataError(
            f"{who}: samples are read from the first axis of the batch's tensors. "
            f"Got a {type(batch).__name__} without any. {fix}"
        )
    shapes = ", ".join(describe(leaf) for leaf in found)
    raise DataError(
        f"{who}: all tensors of a batch must agree on their first axis, to say how many samples "
        f"it has. Got {shapes}. {fix}"
    )
