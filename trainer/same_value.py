"""Whether two hyper-parameters mean the same, however they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from minitorch import Tensor


def same_value(one: Any, other: Any) -> bool:
    """Whether values are equal: all numbers of arrays, dicts in any order, NaN with NaN.

    Tuples equal lists, and scalars of NumPy and tensors of one number equal Python's, because
    files of configuration hold no others.
    """
    one, other = _plain(one), _plain(other)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return _same_arrays(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_value(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    return bool(one == other) or repr(one) == repr(other)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
        return value.item() if value.ndim == 0 else value
    return value.item() if isinstance(value, np.generic) else value


def _same_arrays(one: Any, other: Any) -> bool:
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return False
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    equal = one == other
    return bool(np.all(equal | ((one != one) & (other != other))))
