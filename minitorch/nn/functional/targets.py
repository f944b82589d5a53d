"""Rules for the inputs and targets of classification losses, with messages that state the form.

Values are looked at on the CPU only; on other devices that would wait for the device.
"""

from __future__ import annotations

from typing import Any

from ... import backend
from ...autograd.node import Node
from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...tensor import Tensor

_PROBABILITIES = frozenset({"softmax", "sigmoid"})


def _on_host(tensor: Tensor) -> Any:
    """The values on the CPU, or None where getting them would wait for a device."""
    array = tensor.detach()._array
    return array if backend.device_of(array).type == "cpu" else None


def refuse_probabilities(name: str, input: Tensor) -> None:
    """Raises ArgumentError if `input` is the output of softmax or sigmoid itself."""
    node = input.grad_fn
    while node is not None and node.op.name == "to" and node.edges:
        node = node.edges[0] if isinstance(node.edges[0], Node) else None
    if node is not None and node.op.name in _PROBABILITIES:
        wanted = "log-probabilities" if name == "nll_loss" else "logits"
        fix = (
            "Use log_softmax instead of it."
            if name == "nll_loss"
            else f"Leave {node.op.name} away: the loss contains it."
        )
        raise ArgumentError(
            f"{name}: the input must be {wanted}. Got the output of {node.op.name}. {fix}"
        )


def check_unit_interval(name: str, what: str, tensor: Tensor, fix: str) -> None:
    """Raises ArgumentError if a value is outside of [0, 1] or NaN."""
    array = _on_host(tensor)
    if array is not None and array.size and not (array.min() >= 0 and array.max() <= 1):
        raise ArgumentError(
            f"{name}: {what} must be probabilities, from 0 to 1. "
            f"Got {float(array.min()):.6g} to {float(array.max()):.6g}. {fix}"
        )


def check_not_negative(name: str, what: str, tensor: Tensor) -> None:
    """Raises ArgumentError if a value is below 0."""
    array = _on_host(tensor)
    if array is not None and (array < 0).any():
        raise ArgumentError(
            f"{name}: {what} must not be negative. Got {float(array.min()):.6g}. "
            "Did you pass its logarithm?"
        )


def check_range(name: str, target: Tensor, low: int, high: int) -> None:
    """Raises ArgumentError if a class number is not from `low` to `high`."""
    array = _on_host(target)
    if array is not None and array.size and (array.min() < low or array.max() > high):
        raise ArgumentError(
            f"{name}: class numbers must be from {low} to {high}. "
            f"Got {int(array.min())} to {int(array.max())}."
        )


def class_weight(name: str, input: Tensor, weight: Tensor | None) -> Tensor | None:
    """The weights of the classes without gradient, in the dtype of the input."""
    if not input.dtype.is_floating_point or not input.ndim:
        raise DtypeError(
            f"{name}: the input must be floating, [N, C, …] or [C]. Got {describe(input)}."
        )
    if weight is None:
        return None
    classes = input.shape[1 if input.ndim > 1 else 0]
    if tuple(weight.shape) != (classes,):
        raise ShapeError(
            f"{name}: weight must have one element for each of the {classes} classes. "
            f"Got {describe(weight)}."
        )
    return weight.detach().to(input.dtype)


def check_classes(
    name: str, input: Tensor, target: Tensor, ignore_index: int, reduction: str
) -> bool:
    """Raises unless `target` holds class numbers for `input`.

    Returns:
        True if it is known that every target counts.
    """
    axis = 1 if input.ndim > 1 else 0
    classes = input.shape[axis]
    wanted = tuple(input.shape[:axis]) + tuple(input.shape[axis + 1 :])
    if target.dtype.is_floating_point or target.dtype.category == 0:
        soft = f", or probabilities {tuple(input.shape)}" if name == "cross_entropy" else ""
        raise DtypeError(
            f"{name}: class numbers must be integers of shape {wanted}. Got {describe(target)} for "
            f"the input {describe(input)}. Use target.long(){soft}."
        )
    if tuple(target.shape) != wanted:
        raise ShapeError(_shape_message(name, input, target, wanted))
    array = _on_host(target)
    if array is None or not array.size:
        return False
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= classes or low == high == ignore_index:
        _check_with_ignored(name, array, classes, ignore_index, reduction)
    return not low <= ignore_index <= high


def _check_with_ignored(
    name: str, array: Any, classes: int, ignore_index: int, reduction: str
) -> None:
    counted = array[array != ignore_index]
    if not counted.size:
        if reduction == "mean":
            raise ArgumentError(
                f"{name}: at least one target must count for the mean. All {array.size} are "
                f"ignore_index={ignore_index}, which gives 0/0. Skip such batches, or use "
                "reduction='sum'."
            )
        return
    low, high = int(counted.min()), int(counted.max())
    if low < 0 or high >= classes:
        shift = " Did you mean target - 1?" if low == 1 and high == classes else ""
        raise ArgumentError(
            f"{name}: class numbers must be from 0 to {classes - 1} for {classes} classes (or "
            f"ignore_index={ignore_index}). Got {low} to {high}.{shift}"
        )


def _shape_message(name: str, input: Tensor, target: Tensor, wanted: tuple[int, ...]) -> str:
    fix = "Classes belong on axis 1 of the input."
    if target.shape == input.shape:
        fix = "Use target.argmax(1) for one-hot targets, or .float() for probabilities."
    elif tuple(target.shape) == (*wanted, 1):
        fix = "Did you mean target.squeeze(-1)?"
    elif input.ndim == 3 and tuple(target.shape) == tuple(input.shape[:2]):
        fix = "Did you mean input.transpose(1, 2)? Classes belong on axis 1."
    return (
        f"{name}: the target must have the shape {wanted}, one class number for each row. "
        f"Got {describe(target)} for the input {describe(input)}. {fix}"
    )
