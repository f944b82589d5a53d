"""Linear maps, embeddings and dropout under PyTorch's names."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backend
from ...autograd.mode import no_grad
from ...errors import ArgumentError, DtypeError, IndexRangeError, ShapeError, describe
from ...ops import dropout as dropout_ops
from ...ops import elementwise, inplace, linalg, ordering
from ...ops.embedding import lookup
from ...ops.primitive import check_same_device, wrap
from ...ops.recording import as_a_whole, copied, unrecordable
from ...tensor import Tensor
from .checks import need_floating, need_tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`y = x Aᵀ + b` with weight A of shape [out_features, in_features].

    Args:
        input: x, f[…, in_features].
        weight: A.
        bias: b, f[out_features], or None.
    """
    if not isinstance(input, Tensor):
        need_tensor("linear", "the input", input)
    return linalg.linear(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`y_o = x1ᵀ W_o x2 + b_o` with weight f[out, in1, in2].

    Args:
        input1, input2: x1, f[…, in1], and x2, f[…, in2].
        weight: W.
        bias: b, f[out], or None.
    """
    left = (input1.unsqueeze(-2).unsqueeze(-2) @ weight).squeeze(-2)
    y = (left * input2.unsqueeze(-2)).sum(-1)
    return y if bias is None else y + bias


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` by number.

    Args:
        input: Integer tensor of any shape; the numbers of the rows.
        weight: f[num_embeddings, embedding_dim].
        padding_idx: Number of a row that gets no gradient.
        max_norm: Rows with a larger norm are scaled down to it first, in place.
        norm_type: Order of that norm.
        scale_grad_by_freq: Divide the gradient of a row by how often it occurs.
        sparse: Gradients are dense here; accepted and ignored.

    Returns:
        f[*input.shape, embedding_dim].

    Raises:
        DtypeError: The input is not integer.
        IndexRangeError: A number is outside of the table (checked on the CPU).
    """
    need_tensor("embedding", "the input", input)
    if input.dtype.is_floating_point or input.dtype.category == 0:
        raise DtypeError(
            f"embedding: the input must hold whole numbers. Got {describe(input)}. Use .long()."
        )
    if weight.ndim != 2:
        raise ShapeError(f"embedding: weight must be [rows, width]. Got {describe(weight)}.")
    check_same_device("embedding", [weight, input])
    rows = weight.shape[0]
    index = input.detach()._array
    _check_rows(index, rows)
    padding = table_row("embedding", padding_idx, rows)
    # The gradient needs the numbers as they are now, whatever is written to the input later.
    index = copied(index)
    if max_norm is not None:
        renormalise(weight, index, max_norm, norm_type)
    scale = frequency_scale(weight, index) if scale_grad_by_freq else None
    return lookup(weight, index=index, padding=padding, rows=rows, scale=scale)


@as_a_whole("check")
def _check_rows(index: Any, rows: int) -> None:
    on_host = backend.device_of(index).type == "cpu"
    if (
        on_host
        and index.size
        and (np.minimum.reduce(index, axis=None) < 0 or np.maximum.reduce(index, axis=None) >= rows)
    ):
        raise IndexRangeError(
            f"embedding: row numbers must be from 0 to {rows - 1}. "
            f"Got {int(index.min())} to {int(index.max())}. Enlarge num_embeddings."
        )


def table_row(name: str, number: int | None, rows: int) -> int | None:
    """The number of a row, counted from the front.

    Raises:
        ArgumentError: There is no such row.
    """
    if number is None:
        return None
    if not -rows <= number < rows:
        raise ArgumentError(
            f"{name}: padding_idx must be from {-rows} to {rows - 1}. Got {number}."
        )
    return number % rows


def renormalise(weight: Tensor, index: Any, max_norm: float, norm_type: float) -> None:
    """Scales the rows of `weight` that are used and longer than `max_norm` down to it."""
    unrecordable("embedding with max_norm changes rows of its weight")
    used = backend.namespace(index).unique(index)
    with no_grad():
        rows = weight.detach()[wrap(used)]
        norms = rows.norm(norm_type, 1, True)
        scaled = rows * (max_norm / (norms + 1e-7))
        weight.detach()[wrap(used)] = elementwise.where(norms > max_norm, scaled, rows)


def frequency_scale(weight: Tensor, index: Any) -> Any:
    """1 over the number of times that each entry of `index` occurs, in the dtype of `weight`."""
    unrecordable("embedding with scale_grad_by_freq counts its indices")
    counts = backend.namespace(index).bincount(index.reshape(-1), minlength=weight.shape[0])
    return (1 / counts[index]).astype(weight._array.dtype)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64[…, num_classes] with a 1 at each class number."""
    return ordering.one_hot(tensor, num_classes)


def _check_p(name: str, p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"{name}: p is a probability, from 0 to 1. Got {p}.")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets each element to 0 with probability p and scales the others by `1 / (1 - p)`.

    Args:
        input: The tensor.
        p: Probability of an element to be set to 0.
        training: False returns the input itself.
        inplace: Write into the memory of the input.

    Raises:
        ArgumentError: p is outside of [0, 1].

    Source: Srivastava et al., Dropout, 2014.
    """
    return _dropout("dropout", input, p, training, inplace, 0)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of f[N, C, L]."""
    return _dropout("dropout1d", input, p, training, inplace, 1)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of f[N, C, H, W]."""
    return _dropout("dropout2d", input, p, training, inplace, 2)


def _dropout(
    name: str, x: Tensor, p: float, training: bool, in_place: bool, whole_axes: int
) -> Tensor:
    need_tensor(name, "the input", x)
    _check_p(name, p)
    if not training or p == 0 or not x.numel():
        return x
    need_floating(name, x)
    if whole_axes and x.ndim not in (whole_axes + 1, whole_axes + 2):
        raise ShapeError(
            f"{name}: the input must have {whole_axes + 2} axes (or {whole_axes + 1} without the "
            f"batch). Got {describe(x)}."
        )
    if not whole_axes and not in_place:
        return dropout_ops.dropped(x, p)
    shape = tuple(x.shape)
    shape = shape[: len(shape) - whole_axes] + (1,) * whole_axes
    keep, scale = dropout_ops.draw_mask(shape, p, x._array)
    if in_place:
        return inplace.apply_(x, f"{name}_", dropout_ops.dropout_op, keep=keep, scale=scale)
    return dropout_ops.dropout_op(x, keep=keep, scale=scale)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of f[N, C, D, H, W]."""
    return _dropout("dropout3d", input, p, training, inplace, 3)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1 behind SELU.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """
    return _alpha_dropout("alpha_dropout", input, p, training, inplace, False)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels of f[N, C, …].

    Raises:
        ShapeError: The input has no axis of channels.
    """
    return _alpha_dropout("feature_alpha_dropout", input, p, training, inplace, True)


def _alpha_dropout(
    name: str, x: Tensor, p: float, training: bool, in_place: bool, whole: bool
) -> Tensor:
    need_tensor(name, "the input", x)
    _check_p(name, p)
    if not training or p == 0 or not x.numel():
        return x
    if whole and x.ndim < 2:
        raise ShapeError(f"{name}: the input must be [N, C, …]. Got {describe(x)}.")
    shape = tuple(x.shape)
    keep, _ = dropout_ops.draw_mask(
        (*shape[:2], *[1] * (x.ndim - 2)) if whole else shape, p, x._array
    )
    floor = -1.7580993408473766
    scale = 0.0 if p == 1 else (1 - p + floor * floor * p * (1 - p)) ** -0.5

    def dropped(x: Tensor) -> Tensor:
        kept = elementwise.where(wrap(keep), x, floor)
        return kept * scale - scale * floor * p

    return inplace.apply_(x, f"{name}_", dropped) if in_place else dropped(x)
