"""Whether two results are the same up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

# Relative to the largest value. A replay calls the same bodies, so that differences beyond the
# last bits mean that it computes something else.
_TOLERANCE = {2: 2e-2, 4: 1e-5, 8: 1e-10, 16: 1e-10}


def alike(a: Any, b: Any, *, exactly: bool = False) -> bool:
    """True for arrays of one shape, dtype and, up to rounding, value; also for tuples of them."""
    if isinstance(a, tuple | list):
        if not isinstance(b, tuple | list) or len(a) != len(b):
            return False
        return all(alike(one, other, exactly=exactly) for one, other in zip(a, b, strict=True))
    if not isinstance(a, np.ndarray | np.generic):
        return not isinstance(b, np.ndarray | np.generic)
    if not isinstance(b, np.ndarray | np.generic) or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a is b or a.tobytes() == b.tobytes():
        return True
    if exactly or a.dtype.kind not in "fcV":
        return False
    tolerance = _TOLERANCE[a.dtype.itemsize]
    if a.dtype.kind == "V":
        a, b = a.astype(np.float32), b.astype(np.float32)
    with np.errstate(all="ignore"):
        size = np.abs(b[np.isfinite(b)] if np.ndim(b) else b).max(initial=0.0)
        near = np.abs(a - b) <= tolerance * size
        return bool(np.all(near | (a == b) | ((a != a) & (b != b))))
