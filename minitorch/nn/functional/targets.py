"""Rules for the inputs and targets of classification losses, with messages that state the form.

Values are looked at on the CPU only; on other devices that would wait for the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backend
from ...autograd.mode import state
from ...autograd.node import Node, user_line, where
from ...checks import is_intended
from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops.recording import as_a_whole
from ...tensor import Tensor

_SAME_VALUES = frozenset("to reshape permute slice expand squeeze clone alias clamp".split())
_SAME_VALUES |= {"unsqueeze", "transpose", "index", "gather", "flip", "index_select", "select"}
_KINDS = {"softmax": "probabilities", "sigmoid": "probabilities"}
_KINDS |= {"log_softmax": "log-probabilities", "logsigmoid": "log-probabilities"}
_KINDS |= dict.fromkeys(("linear", "addmm", "matmul", "convolution"), "logits")


def _on_host(tensor: Tensor) -> Any:
    """The values on the CPU, or None where getting them would wait for a device."""
    array = tensor._array
    on_host = type(array) is np.ndarray or backend.device_of(array).type == "cpu"
    return array if on_host else None


def kind_of(input: Tensor) -> tuple[str, Node | None]:
    """What the values of a recorded result are, and the operation that made them so.

    Returns:
        "probabilities", "log-probabilities", "logits", or "" where nobody knows; reshaping,
        indexing, clamping and casting change nothing of it.
    """
    node = input.grad_fn
    while node is not None and node.op.name in _SAME_VALUES and node.edges:
        node = node.edges[0] if isinstance(node.edges[0], Node) else None
    if node is None:
        return "", None
    if node.op.name == "log" and node.edges and isinstance(node.edges[0], Node):
        return ("log-probabilities", node) if _KINDS.get(node.edges[0].op.name) else ("", node)
    return _KINDS.get(node.op.name, ""), node


_TAKES = {
    "cross_entropy": ("logits", ("probabilities",)),
    "binary_cross_entropy_with_logits": ("logits", ("probabilities", "log-probabilities")),
    "nll_loss": ("log-probabilities", ("probabilities", "logits")),
    "kl_div": ("log-probabilities", ("probabilities",)),
}


def check_kind(name: str, input: Tensor) -> None:
    """Raises unless the values of `input` can be what the loss takes.

    In the first step of a fit (`state.noting`) values of unknown origin are looked at.

    Raises:
        ArgumentError: Names what made them, and the fix.
    """
    wanted, refused = _TAKES[name]
    kind, node = kind_of(input)
    if kind not in refused and state.noting:
        kind, node = _kind_of_values(wanted, input), None
    if kind not in refused:
        return
    check = "double-softmax" if wanted == "logits" else "bce-nll-input-mixup"
    if is_intended(check) or is_intended("bce-nll-input-mixup"):
        return
    if node is None:
        came = f"values that look like {kind}"
    else:
        came = f"the output of {node.op.name}"
    if wanted == "logits":
        fix = f"Leave {node.op.name if node else 'softmax'} away: the loss contains it."
    else:
        fix = "Use log_softmax instead of it." if kind == "probabilities" else "Apply log_softmax."
    line = where(node) if node is not None else ""
    here = f" The loss is called at {user_line()}." if line or node is None else ""
    raise ArgumentError(
        f"{name}: the input must be {wanted}. Got {came}. {fix}{line}{here} If it is meant: "
        f'`with intended("{check}"):` around the loss.'
    )


def _kind_of_values(wanted: str, input: Tensor) -> str:
    array = _on_host(input)
    if array is None or array.ndim < 2 or array.shape[1] < 2 or array.dtype.kind != "f":
        return ""
    if wanted == "log-probabilities":
        return "logits" if array.max() > 1e-3 else ""
    if not array.min() >= 0 or not array.max() <= 1:
        return ""
    sums = array.sum(1)
    return "probabilities" if abs(sums - 1).max() < 1e-4 else ""


@as_a_whole("check")
def check_unit_interval(name: str, what: str, tensor: Tensor, fix: str) -> None:
    """Raises ArgumentError if a value is outside of [0, 1] or NaN."""
    array = _on_host(tensor)
    if array is not None and array.size and not (array.min() >= 0 and array.max() <= 1):
        raise ArgumentError(
            f"{name}: {what} must be probabilities, from 0 to 1. "
            f"Got {float(array.min()):.6g} to {float(array.max()):.6g}. {fix}"
        )


@as_a_whole("check")
def check_not_negative(name: str, what: str, tensor: Tensor) -> None:
    """Raises ArgumentError if a value is below 0."""
    array = _on_host(tensor)
    if array is not None and (array < 0).any():
        raise ArgumentError(
            f"{name}: {what} must not be negative. Got {float(array.min()):.6g}. "
            "Did you pass its logarithm?"
        )


@as_a_whole("check")
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
    if input._array.dtype.kind not in "fV" or not input._array.ndim:
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
    shape = input._array.shape
    axis = 1 if len(shape) > 1 else 0
    classes = shape[axis]
    wanted = shape[:axis] + shape[axis + 1 :]
    if target._array.dtype.kind not in "iu":
        soft = f", or probabilities {tuple(input.shape)}" if name == "cross_entropy" else ""
        raise DtypeError(
            f"{name}: class numbers must be integers of shape {wanted}. Got {describe(target)} for "
            f"the input {describe(input)}. Use target.long(){soft}."
        )
    if target._array.shape != wanted:
        raise ShapeError(_shape_message(name, input, target, wanted))
    array = _on_host(target)
    if array is None or not array.size:
        return False
    return _check_numbers(name, array, classes, ignore_index, reduction)


_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


@as_a_whole("check")
def _check_numbers(name: str, array: Any, classes: int, ignore_index: int, reduction: str) -> bool:
    if ignore_index < 0 and array.dtype.kind == "i":
        # As numbers without a sign negative ones are the largest: one look finds both mistakes.
        if np.maximum.reduce(array.view(_UNSIGNED[array.itemsize]), axis=None) < classes:
            return True
    low = np.minimum.reduce(array, axis=None)
    high = np.maximum.reduce(array, axis=None)
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
