"""Where sums of half types are formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes


def wide(a: Any) -> Any:
    """The array with half types as float32, in which they are summed."""
    return a.astype(np.float32) if a.dtype in dtypes.HALF else a
