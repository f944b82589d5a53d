"""Where sums of half types are formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes


def wide(a: Any) -> Any:
    """The array with half types as float32, in which they are summed."""
    return a.astype(np.float32) if a.dtype in dtypes.HALF else a


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which numbers of this one are summed."""
    return np.dtype(np.float32) if dtype in dtypes.HALF else dtype
