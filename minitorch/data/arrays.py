"""The few things the data package does with raw arrays."""

from typing import Any

import numpy as np

from .. import backend, dtypes
from ..tensor import Tensor

_NUMPY_DTYPES = frozenset(dtype.numpy for dtype in dtypes.ALL)


def is_array(value: Any) -> bool:
    """True for a Tensor or an array of any backend."""
    return isinstance(value, Tensor) or backend.is_array(value)


def raw(value: Any) -> Any:
    """The array of a Tensor; arrays as they are."""
    return value._array if isinstance(value, Tensor) else value


def fits_tensor(array: Any) -> bool:
    """Whether a Tensor can have the dtype of an array."""
    return array.dtype in _NUMPY_DTYPES


def take_rows(values: Any, indices: Any) -> Any:
    """The rows of an array or Tensor as a new array.

    Args:
        values: (n, …).
        indices: a range with step 1, or an integer array.
    """
    array = raw(values)
    if type(indices) is range:
        return array[indices.start : indices.stop].copy()
    if isinstance(array, np.ndarray):
        return array.take(indices, axis=0)
    return array.take(backend.of(array).xp.asarray(indices), axis=0)
