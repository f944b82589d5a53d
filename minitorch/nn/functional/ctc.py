"""The loss of label sequences without an alignment."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import backend
from ...errors import ArgumentError, DtypeError, IndexRangeError, ShapeError, describe
from ...ops import elementwise
from ...ops.creation import tensor
from ...ops.ctc import Paths, ctc_op, paths
from ...ops.distance import reduced
from ...tensor import Tensor
from .checks import check_reduction, need_tensor
from .loss_checks import full_width

_NAME = "ctc_loss"


def _numbers(what: str, values: Any, count: int, limit: int) -> np.ndarray:
    """Lengths as int64[N] on the host.

    Raises:
        ShapeError: There are more or fewer than sequences.
        ArgumentError: One is negative or above the limit.
    """
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    out = array.astype(np.int64).reshape(-1)
    if len(out) != count:
        raise ShapeError(
            f"{_NAME}: {what} must have one number for each of the {count} sequences. "
            f"Got {len(out)}."
        )
    if len(out) and (out.min() < 0 or out.max() > limit):
        raise ArgumentError(
            f"{_NAME}: {what} must be from 0 to {limit}. Got {out.min()} to {out.max()}."
        )
    return out


def _padded(targets: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Labels as int64[N, longest]."""
    longest = int(lengths.max()) if len(lengths) else 0
    if targets.ndim == 2:
        return targets[:, :longest]
    present = np.arange(longest) < lengths[:, None]
    out = np.zeros(present.shape, np.int64)
    out[present] = targets
    return out


def _check_targets(targets: np.ndarray, lengths: np.ndarray, count: int) -> None:
    if targets.ndim == 1:
        wanted: Any = (int(lengths.sum()),)
        fits = targets.shape == wanted
    else:
        wanted = f"({count}, {int(lengths.max()) if len(lengths) else 0} or more)"
        fits = targets.ndim == 2 and len(targets) == count
        fits = fits and not (lengths > targets.shape[1]).any()
    if not fits:
        raise ShapeError(
            f"{_NAME}: targets must have the shape {wanted} for the target_lengths "
            f"{lengths.tolist()}. Got {targets.shape}."
        )


@full_width
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-probability of the labels, summed over all alignments.

    The gradient is that of PyTorch, which takes log_probs for the output of log_softmax.

    Args:
        log_probs: f[T, N, C] or f[T, C], from log_softmax.
        targets: Class numbers [N, S], padded, or one after the other [Σ target_lengths].
        input_lengths: Steps of each sequence: a tensor or a sequence of N numbers, or one number.
        target_lengths: Labels of each sequence, likewise.
        blank: Class of the blank.
        reduction: "none", "sum", or "mean": divided by the target lengths, then averaged.
        zero_infinity: Give 0 with gradient 0 where there are too few steps for the labels.

    Returns:
        A number, or with "none" f[N] (f[] without a batch).

    Raises:
        ShapeError: The shapes and lengths do not belong together.
        ArgumentError: A length or the blank is out of range.
        IndexRangeError: A label is out of range.

    Source: Graves et al., Connectionist Temporal Classification, 2006.
    """
    need_tensor(_NAME, "log_probs", log_probs)
    need_tensor(_NAME, "targets", targets)
    check_reduction(_NAME, reduction)
    if log_probs.ndim not in (2, 3) or not log_probs.numel():
        raise ShapeError(
            f"{_NAME}: log_probs must be [T, N, C] or [T, C], with elements. "
            f"Got {describe(log_probs)}."
        )
    if not log_probs.dtype.is_floating_point:
        raise DtypeError(f"{_NAME}: log_probs must be floating. Got {describe(log_probs)}.")
    single = log_probs.ndim == 2
    x = log_probs.unsqueeze(1) if single else log_probs
    limit, count, classes = x.shape
    if not 0 <= blank < classes:
        raise ArgumentError(f"{_NAME}: blank must be from 0 to {classes - 1}. Got {blank}.")
    labels = targets.detach().cpu().numpy().astype(np.int64)
    steps = _numbers("input_lengths", input_lengths, count, limit)
    lengths = _numbers("target_lengths", target_lengths, count, labels.size)
    _check_targets(labels, lengths, count)
    labels = _padded(labels, lengths)
    used = labels[np.arange(labels.shape[1]) < lengths[:, None]]
    if used.size and (used.min() < 0 or used.max() >= classes):
        raise IndexRangeError(
            f"{_NAME}: labels must be from 0 to {classes - 1}. Got {used.min()} to {used.max()}."
        )
    where = backend.device_of(x._array)
    found = paths(labels, lengths, steps, limit, blank)
    placed = Paths(*[backend.from_host(a, where) for a in found])
    loss = ctc_op(x, where=placed, zero_infinity=zero_infinity)
    if reduction == "mean":
        divisor = tensor(np.maximum(lengths, 1), device=x.device, dtype=x.dtype)
        return elementwise.div(loss, divisor).mean()
    return loss.squeeze(0) if single and reduction == "none" else reduced(loss, reduction)
