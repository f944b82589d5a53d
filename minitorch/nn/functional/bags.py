"""Embeddings of bags: rows of a table, summed, averaged or maximised over each bag."""

from __future__ import annotations

import math
from typing import Any

from ... import backend
from ...errors import ArgumentError, DtypeError, IndexRangeError, ShapeError, describe
from ...ops import elementwise, reduction
from ...ops.embedding import collect, lookup
from ...ops.primitive import check_same_device, wrap
from ...tensor import Tensor
from .checks import need_tensor
from .layer import frequency_scale, renormalise, table_row

_NAME = "embedding_bag"


def _bags(input: Tensor, offsets: Tensor | None, last: bool) -> tuple[Any, Any, int]:
    """Row numbers as one axis, the bag of each, and the number of bags.

    Raises:
        ShapeError: Input and offsets do not belong together.
        ArgumentError: The offsets do not start at 0, or leave the input.
    """
    index = input.detach()._array
    xp = backend.namespace(index)
    if input.ndim == 2:
        if offsets is not None:
            raise ShapeError(
                f"{_NAME}: the rows of {describe(input)} are the bags. Got offsets too. "
                "Leave them away, or flatten the input."
            )
        count, width = index.shape
        bag = xp.broadcast_to(xp.arange(count)[:, None], (count, width)).reshape(-1)
        return index.reshape(-1), bag, count
    if input.ndim != 1 or offsets is None or offsets.ndim != 1:
        raise ShapeError(
            f"{_NAME}: the input must be [bags, entries], or [entries] with offsets [bags]. "
            f"Got {describe(input)} and {describe(offsets)}."
        )
    starts = offsets.detach()._array
    if backend.device_of(starts).type == "cpu" and starts.size:
        end = int(starts[-1])
        if int(starts[0]) or end > len(index) or (last and end != len(index)):
            raise ArgumentError(
                f"{_NAME}: offsets must start at 0 and not leave the {len(index)} entries; with "
                f"include_last_offset they end there. Got {int(starts[0])} to {end}."
            )
    if last and not len(starts):
        raise ShapeError(f"{_NAME}: include_last_offset needs an offset. Got none.")
    count = len(starts) - 1 if last else len(starts)
    places = xp.arange(len(index))
    bag = xp.searchsorted(starts[:count], places, side="right") - 1
    return index, bag, count


def _check(input: Tensor, weight: Tensor, mode: str, samples: Tensor | None, by_freq: bool) -> None:
    need_tensor(_NAME, "the input", input)
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"{_NAME}: mode must be 'sum', 'mean' or 'max'. Got {mode!r}.")
    if mode == "max" and by_freq:
        raise ArgumentError(f"{_NAME}: scale_grad_by_freq has no meaning with mode='max'.")
    if input.dtype.is_floating_point or input.dtype.category == 0:
        raise DtypeError(
            f"{_NAME}: the input must hold whole numbers. Got {describe(input)}. Use .long()."
        )
    if weight.ndim != 2:
        raise ShapeError(f"{_NAME}: weight must be [rows, width]. Got {describe(weight)}.")
    if samples is None:
        return
    if mode != "sum":
        raise ArgumentError(f"{_NAME}: per_sample_weights need mode='sum'. Got {mode!r}.")
    if samples.shape != input.shape or samples.dtype is not weight.dtype:
        raise ShapeError(
            f"{_NAME}: per_sample_weights must have the shape of the input and the dtype of the "
            f"weight. Got {describe(samples)} for {describe(input)} and {describe(weight)}."
        )


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Rows of `weight` by number, reduced over each bag; an empty bag gives 0.

    Args:
        input: Row numbers: [bags, entries], or [entries] with offsets.
        weight: f[rows, width].
        offsets: Where each bag begins in an input of one axis.
        max_norm: Rows with a larger norm are scaled down to it first, in place.
        norm_type: Order of that norm.
        scale_grad_by_freq: Divide the gradient of a row by how often it occurs.
        mode: "sum", "mean" or "max".
        sparse: Gradients are dense here; accepted and ignored.
        per_sample_weights: Factors of the shape of the input; only with "sum".
        include_last_offset: The last offset is the end of the last bag.
        padding_idx: Number of a row that does not count and gets no gradient.

    Returns:
        f[bags, width].

    Raises:
        ShapeError, DtypeError, ArgumentError: The arguments do not belong together.
        IndexRangeError: A number is outside of the table (checked on the CPU).
    """
    _check(input, weight, mode, per_sample_weights, scale_grad_by_freq)
    check_same_device(_NAME, [weight, input])
    index, bag, count = _bags(input, offsets, include_last_offset)
    rows, width = weight.shape
    if backend.device_of(index).type == "cpu" and index.size:
        if index.min() < 0 or index.max() >= rows:
            raise IndexRangeError(
                f"{_NAME}: row numbers must be from 0 to {rows - 1}. "
                f"Got {int(index.min())} to {int(index.max())}."
            )
    padding = table_row(_NAME, padding_idx, rows)
    index = index.copy()
    if max_norm is not None:
        renormalise(weight, index, max_norm, norm_type)
    scale = frequency_scale(weight, index) if scale_grad_by_freq else None
    found = lookup(weight, index=index, padding=padding, rows=rows, scale=scale)
    counts = index == index if padding is None else index != padding
    if mode == "max":
        return _largest(found, counts, bag, count)
    if per_sample_weights is not None:
        found = found * per_sample_weights.reshape(-1, 1)
    if padding is not None:
        found = found * wrap(counts[:, None])
    options = {"index": bag, "padding": None, "rows": count, "scale": None}
    total = collect(found, **options)
    if mode == "sum":
        return total
    entries = collect(counts[:, None].astype(weight._array.dtype), **options)
    return total / elementwise.clamp_min(wrap(entries), 1)


def _largest(found: Tensor, counts: Any, bag: Any, count: int) -> Tensor:
    """The maximum over each bag, from bags that are padded to one length."""
    xp = backend.namespace(bag)
    if not count or not len(found):
        return found.new_zeros((count, found.shape[1])) + found.sum() * 0
    sizes = xp.bincount(bag, minlength=count)
    longest = int(sizes.max())
    places = xp.arange(len(bag)) - (xp.cumsum(sizes) - sizes)[bag]
    table = xp.full((count, longest), 0, bag.dtype)
    present = xp.zeros((count, longest), bool)
    table[bag, places] = xp.arange(len(bag))
    present[bag, places] = counts
    padded = elementwise.where(wrap(present[:, :, None]), found[wrap(table)], -math.inf)
    largest = reduction.amax(padded, 1)
    return elementwise.where(wrap(present.any(axis=1)[:, None]), largest, 0.0)
