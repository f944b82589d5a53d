"""What distributions share: parameters of one shape, and the two forms of a probability."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError
from ..nn.functional import softmax
from ..ops.elementwise import clamp, log, log1p, logaddexp, sigmoid, zeros_like
from ..ops.primitive import wrap
from ..ops.sampling import draw
from ..ops.shape import broadcast_tensors
from ..ops.softmax import logsumexp
from ..size import Size
from ..tensor import Tensor

lazy_property = functools.cached_property
EULER = 0.5772156649015329
LOG_2PI = math.log(2 * math.pi)


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape.

    Numbers take the dtype and device of the first tensor, or the default dtype.

    Raises:
        ArgumentError: A value is neither a number nor a tensor.
    """
    for value in values:
        if not isinstance(value, Tensor | bool | int | float | np.generic):
            raise ArgumentError(
                "distribution: parameters must be numbers or tensors. "
                f"Got {type(value).__name__}. Convert it with minitorch.tensor(...)."
            )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = dtypes.get_default_dtype() if like is None else like.dtype
    tensors = [v if isinstance(v, Tensor) else full((), v, dtype, like) for v in values]
    return tuple(broadcast_tensors(*tensors))


def full(shape: Any, value: Any, dtype: Any, like: Any) -> Any:
    """A constant on the device of `like`."""
    array = np.full(tuple(shape), value, dtype.numpy)
    return wrap(array if like is None else backend.from_host(array, like.device))


def from_draw(array: Any, like: Any) -> Any:
    """What NumPy drew, in the dtype and on the device of `like`."""
    host = np.asarray(array).astype(like.dtype.numpy, copy=False)
    return wrap(backend.from_host(host, like.device))


def host(t: Any, shape: Any) -> np.ndarray:
    """The values of a parameter for NumPy to draw with, in float64 and in the shape of a sample."""
    values = backend.to_host(t.detach()._array).astype(np.float64)
    return np.broadcast_to(values, tuple(shape))


def rng() -> np.random.Generator:
    """The generator of the next draw."""
    return draw()


def uniform_like(shape: Any, like: Any) -> Any:
    """Numbers from the open interval (0, 1)."""
    eps = dtypes.finfo(like.dtype).eps
    return from_draw(np.clip(rng().random(tuple(shape)), eps, 1 - eps), like)


def normal_like(shape: Any, like: Any) -> Any:
    """Standard normal numbers."""
    return from_draw(rng().standard_normal(tuple(shape)), like)


def clamp_probs(probs: Any) -> Any:
    """Probabilities that are neither 0 nor 1, so that their logarithms are finite."""
    eps = dtypes.finfo(probs.dtype).eps
    return clamp(probs, eps, 1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """The probabilities of log-odds, or of unnormalised log-probabilities along the last axis."""
    return sigmoid(logits) if is_binary else softmax(logits, dim=-1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Log-odds, or log-probabilities."""
    kept = clamp_probs(probs)
    return log(kept) - log1p(-kept) if is_binary else log(kept)


def normalised(logits: Any) -> Any:
    """Log-probabilities along the last axis."""
    return logits - logsumexp(logits, dim=-1, keepdim=True)


def one_of(kind: str, **given: Any) -> None:
    """Raises unless exactly one of the arguments is given.

    Raises:
        ArgumentError: None or several are.
    """
    present = [name for name, value in given.items() if value is not None]
    if len(present) != 1:
        raise ArgumentError(
            f"{kind}: give exactly one of {', '.join(given)}. "
            f"Got {' and '.join(present) or 'none'}."
        )


def binary_cross_entropy(logits: Any, targets: Any) -> Any:
    """`-log p(target)` of Bernoulli variables with these log-odds, without overflow."""
    return logaddexp(logits, zeros_like(logits)) - logits * targets


def enumerated(values: Any, batch_shape: Any, expand: bool) -> Any:
    """Values `[n]` as `[n, 1, …]` beside the axes of a batch, or repeated along them."""
    values = values.reshape((-1, *([1] * len(batch_shape))))
    return values.expand((len(values), *batch_shape)) if expand else values


def sum_rightmost(value: Any, dims: int) -> Any:
    """The sum over the last `dims` axes."""
    return value if not dims else value.sum(dim=tuple(range(-dims, 0)))


def as_size(shape: Any) -> Size:
    """A shape, from one number or several."""
    return Size((shape,)) if isinstance(shape, int) else Size(shape)


def draw_classes(probs: Any, sample_shape: Any) -> np.ndarray:
    """Class numbers drawn from each row of `probs`, [*sample_shape, *batch_shape]."""
    weights = backend.to_host(probs.detach()._array).astype(np.float64)
    batch, classes = weights.shape[:-1], weights.shape[-1]
    edges = np.cumsum(weights.reshape(-1, classes), axis=1)
    edges /= edges[:, -1:]
    count = as_size(sample_shape).numel()
    rows = np.arange(edges.shape[0])
    # Row r holds the numbers from r to r + 1, so that one search serves all rows.
    points = rng().random((count, edges.shape[0])) + rows
    found = np.searchsorted((edges + rows[:, None]).reshape(-1), points, side="right")
    found = np.minimum(found - rows * classes, classes - 1)
    return found.reshape((*as_size(sample_shape), *batch))
