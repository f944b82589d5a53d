"""Functions of one float32 that loops in kernels are made of.

They have no branches, and a compiler turns loops over slices (`for i in range(len(part))`, whose
positions cannot be negative) that call them into vector code.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

_F = np.float32
_LEAST, _MOST = _F(-87.3), _F(88.3)


@register_jitable
def exp_within(x):  # type: ignore[no-untyped-def]
    """exp of a float32 from -87.3 to 88.3, to 2 units in the last place; NaN stays NaN.

    Source: S. L. Moshier, Cephes Mathematical Library, expf, 1992.
    """
    n = np.floor(x * _F(1.44269504) + _F(0.5))
    r = x - n * _F(0.693359375) + n * _F(2.12194440e-4)
    y = _F(1.9875691500e-4)
    y = y * r + _F(1.3981999507e-3)
    y = y * r + _F(8.3334519073e-3)
    y = y * r + _F(4.1665795894e-2)
    y = y * r + _F(1.6666665459e-1)
    y = y * r + _F(5.0000001201e-1)
    y = y * r * r + r + _F(1)
    return y * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(_F)


@register_jitable
def exp_f32(x):  # type: ignore[no-untyped-def]
    """exp of a float32 that is at most 0; 0 below -87.3."""
    y = exp_within(max(x, _LEAST))  # in this order max hands a NaN on
    return _F(0) if x < _LEAST else y


@register_jitable
def logistic(x):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x)) of a float32, and 1 minus that; exactly 0 far out."""
    e = exp_f32(min(-x, _MOST))
    s = _F(1) / (_F(1) + e)
    s = _F(0) if -x > _MOST else s
    return s, e * s
