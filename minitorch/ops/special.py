"""Functions that NumPy lacks, on arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend

_SERIES_TERMS = 60
_FRACTION_TERMS = 60
_SWITCH = 2.5
_FEW = 256  # values that Python computes before numba would be imported


def erf_array(a: Any) -> Any:
    """The error function of every element, computed in float64.

    `erf(x) = 2/√π ∫₀ˣ exp(-t²) dt`; a Maclaurin series near 0, a continued fraction beyond.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6 and 7.1.14, 1964.
    """
    xp = backend.namespace(a)
    if xp is np:
        from ..kernels import load

        if a.size < _FEW:
            values = [math.erf(x) for x in a.reshape(-1).tolist()]
            return np.array(values, np.float64).reshape(a.shape).astype(a.dtype)
        kernels = load("special")
        if kernels is not None:
            return kernels.erf(a)
    x = a.astype(np.float64)
    small = xp.minimum(xp.abs(x), _SWITCH)
    term = small.copy()
    total = small.copy()
    for n in range(1, _SERIES_TERMS):
        term = term * (2 * small * small) / (2 * n + 1)
        total = total + term
    near = 2 / math.sqrt(math.pi) * xp.exp(-small * small) * total
    large = xp.maximum(xp.abs(x), _SWITCH)
    tail = large.copy()
    for n in range(_FRACTION_TERMS, 0, -1):
        tail = large + (n / 2) / tail
    far = 1 - xp.exp(-large * large) / (math.sqrt(math.pi) * tail)
    y = xp.where(xp.abs(x) < _SWITCH, near, far)
    return xp.where(xp.isnan(x), x, xp.sign(x) * y).astype(a.dtype)
