"""Padding in every mode: joins of slices, so that gradients are slices and sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ArgumentError, ShapeError, describe
from ...ops import joining, shape
from ...tensor import Tensor
from .checks import need_tensor


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """Adds elements around the last axes.

    Args:
        input: The tensor; for the modes other than "constant" with one or two axes more than there
            are pairs of widths.
        pad: (before, after) of the last axis, then of the one before it, and so on; negative
            numbers cut.
        mode: "constant", "reflect", "replicate" or "circular".
        value: What "constant" fills in; default 0.

    Raises:
        ArgumentError: Unknown mode, or an odd number of widths.
        ShapeError: The widths do not fit the axes, or nothing would be left.
    """
    need_tensor("pad", "the input", input)
    widths = tuple(pad)
    if len(widths) % 2:
        raise ArgumentError(f"pad: widths come in pairs (before, after). Got {widths}.")
    pairs = [(widths[i], widths[i + 1]) for i in range(0, len(widths), 2)]
    if len(pairs) > input.ndim:
        raise ShapeError(
            f"pad: there are more widths than axes. Got {widths} for {describe(input)}."
        )
    if mode == "constant":
        return _constant(input, pairs, 0.0 if value is None else value)
    if mode not in _PADDED:
        raise ArgumentError(
            f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular'. Got {mode!r}."
        )
    if value:
        raise ArgumentError(f"pad: value belongs to mode 'constant'. Got {value} for {mode!r}.")
    if not 1 <= len(pairs) <= 3 or input.ndim - len(pairs) not in (1, 2):
        raise ShapeError(
            f"pad: mode {mode!r} pads the last 1, 2 or 3 axes of a tensor that has one or two axes "
            f"more. Got {widths} for {describe(input)}. Use unsqueeze(0) for the missing axis."
        )
    _check_widths(input, pairs, mode)
    for i, both in enumerate(pairs):
        if any(both):
            input = _padded(input, input.ndim - 1 - i, both, mode)
    return input


def _padded(x: Tensor, axis: int, both: tuple[int, int], mode: str) -> Tensor:
    """`x` longer or shorter along an axis; what is continued is the rest that is left."""
    before, after = max(both[0], 0), max(both[1], 0)
    low, high = max(-both[0], 0), max(-both[1], 0)
    if x.shape[axis] + sum(both) == 0:
        return joining.narrow(x, axis, 0, 0)
    if mode == "circular":
        x = joining.narrow(x, axis, low, x.shape[axis] - low - high)
        return _circular(x, axis, before, after)
    x = _PADDED[mode](x, axis, before, after)
    return joining.narrow(x, axis, low, x.shape[axis] - low - high) if low or high else x


def _constant(x: Tensor, pairs: list[tuple[int, int]], value: Any) -> Tensor:
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    for size, both in zip(x.shape, widths, strict=True):
        if size + sum(min(n, 0) for n in both) < 0:
            raise ShapeError(
                f"pad: no more can be cut off than is there. Got {both} for an axis of {size} "
                f"elements of {describe(x)}."
            )
    return shape.pad_constant(x, widths, value)


def _check_widths(x: Tensor, pairs: list[tuple[int, int]], mode: str) -> None:
    sizes = [x.shape[x.ndim - 1 - i] + sum(both) for i, both in enumerate(pairs)]
    if mode != "circular" and max(sizes) == 0:
        raise ShapeError(f"pad: something must be left. Got {pairs} for {describe(x)}.")
    if not all(x.shape[1:]):
        raise ShapeError(f"pad: mode {mode!r} needs elements to repeat. Got {describe(x)}.")
    for i, both in enumerate(pairs):
        axis = x.ndim - 1 - i
        size = x.shape[axis]
        widest = {"reflect": size - 1, "replicate": max(*both, 0), "circular": size}[mode]
        if max(both) > widest:
            raise ShapeError(
                f"pad: mode '{mode}' adds at most {widest} elements on each side of axis {axis}. "
                f"Got {both} for {describe(x)}."
            )
        if size + sum(both) < 0 or -min(both) > size + max(*both, 0):
            raise ShapeError(
                f"pad: no more can be cut off than is there. Got {both} for axis {axis} of "
                f"{describe(x)}."
            )
        if mode == "circular" and max(both) > size + min(*both, 0) and size + sum(both):
            raise ShapeError(
                f"pad: mode 'circular' continues what is left after the cut, once at most. "
                f"Got {both} for axis {axis} of {describe(x)}."
            )


def _reflected(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    size, parts = x.shape[axis], [x]
    if before:
        parts.insert(0, shape.flip(joining.narrow(x, axis, 1, before), axis))
    if after:
        parts.append(shape.flip(joining.narrow(x, axis, size - 1 - after, after), axis))
    return joining.cat(parts, axis)


def _replicated(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    size, parts = x.shape[axis], [x]
    sizes = list(x.shape)
    if before:
        sizes[axis] = before
        parts.insert(0, joining.narrow(x, axis, 0, 1).expand(sizes))
    if after:
        sizes[axis] = after
        parts.append(joining.narrow(x, axis, size - 1, 1).expand(sizes))
    return joining.cat(parts, axis)


def _circular(x: Tensor, axis: int, before: int, after: int) -> Tensor:
    size, parts = x.shape[axis], [x]
    if before:
        parts.insert(0, joining.narrow(x, axis, size - before, before))
    if after:
        parts.append(joining.narrow(x, axis, 0, after))
    return joining.cat(parts, axis)


_PADDED: dict[str, Callable[[Tensor, int, int, int], Tensor]] = {
    "reflect": _reflected,
    "replicate": _replicated,
    "circular": _circular,
}
