"""Functions of one float32 that loops in kernels are made of.

They have no branches, and a compiler turns loops over slices (`for i in range(len(part))`, whose
positions cannot be negative) that call them into vector code.
"""

from __future__ import annotations

import numpy as np

from .kernel import inlined

_F = np.float32
_LEAST, _MOST = _F(-87.3), _F(88.3)


@inlined
def _exp_parts(x):  # type: ignore[no-untyped-def]
    """m from -0.3 to 0.5 and the whole number n with exp(x) = (1 + m) · 2ⁿ.

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
    return y * r * r + r, np.int32(n)


@inlined
def _power_of_two(n):  # type: ignore[no-untyped-def]
    """2ⁿ for n from -126 to 127."""
    return np.int32((n + np.int32(127)) << np.int32(23)).view(_F)


@inlined
def exp_within(x):  # type: ignore[no-untyped-def]
    """exp of a float32 from -87.3 to 88.3, to 2 units in the last place; NaN stays NaN."""
    m, n = _exp_parts(x)
    return (m + _F(1)) * _power_of_two(n)


@inlined
def exp_any(x):  # type: ignore[no-untyped-def]
    """exp of any float32, also where it is infinite, subnormal or 0."""
    m, n = _exp_parts(min(max(x, _F(-104)), _F(89)))
    half = n >> np.int32(1)
    return (m + _F(1)) * _power_of_two(half) * _power_of_two(n - half)


@inlined
def exp_f32(x):  # type: ignore[no-untyped-def]
    """exp of a float32 that is at most 0; 0 below -87.3."""
    y = exp_within(max(x, _LEAST))  # in this order max hands a NaN on
    return _F(0) if x < _LEAST else y


@inlined
def logistic(x):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x)) of a float32, and 1 minus that; exactly 0 far out."""
    e = exp_f32(min(-x, _MOST))
    s = _F(1) / (_F(1) + e)
    s = _F(0) if -x > _MOST else s
    return s, e * s


@inlined
def expm1_f32(x):  # type: ignore[no-untyped-def]
    """exp(x) - 1 of a float32.

    With `exp x = (1 + m) · 2ⁿ` it is `m · 2ⁿ + (2ⁿ - 1)`, and m near 0, where n is 0.
    """
    m, n = _exp_parts(min(max(x, _F(-87)), _F(20)))
    power = _power_of_two(n)
    y = m * power + (power - _F(1))
    return exp_any(x) if x > _F(20) else y


@inlined
def tanh_f32(x):  # type: ignore[no-untyped-def]
    """tanh of a float32, to 2 units in the last place.

    Source: S. L. Moshier, Cephes Mathematical Library, tanhf, 1992.
    """
    s = x * x
    p = _F(-5.70498872745e-3) * s + _F(2.06390887954e-2)
    p = p * s + _F(-5.37397155531e-2)
    p = p * s + _F(1.33314422036e-1)
    p = p * s + _F(-3.33332819422e-1)
    e = exp_f32(_F(-2) * abs(x))
    large = (_F(1) - e) / (_F(1) + e)
    return p * s * x + x if abs(x) < _F(0.625) else (large if x > 0 else -large)


@inlined
def _log_of_normal(x):  # type: ignore[no-untyped-def]
    """log of a positive float32 that is normal.

    Source: S. L. Moshier, Cephes Mathematical Library, logf, 1992.
    """
    bits = _F(x).view(np.int32)
    exponent = (bits >> np.int32(23)) - np.int32(126)
    m = np.int32((bits & np.int32(0x7FFFFF)) | np.int32(0x3F000000)).view(_F)
    small = m < _F(0.70710678)
    n = np.float32(exponent - np.int32(1) if small else exponent)
    m = m + m - _F(1) if small else m - _F(1)
    p = m * _F(7.0376836292e-2) + _F(-1.1514610310e-1)
    p = p * m + _F(1.1676998740e-1)
    p = p * m + _F(-1.2420140846e-1)
    p = p * m + _F(1.4249322787e-1)
    p = p * m + _F(-1.6668057665e-1)
    p = p * m + _F(2.0000714765e-1)
    p = p * m + _F(-2.4999993993e-1)
    p = p * m + _F(3.3333331174e-1)
    z = m * m
    y = p * m * z + n * _F(-2.12194440e-4) - z * _F(0.5)
    return m + y + n * _F(0.693359375)


@inlined
def log_f32(x):  # type: ignore[no-untyped-def]
    """log of a float32, to 2 units in the last place; -inf at 0, NaN below it."""
    tiny = x < _F(1.17549435e-38)
    y = _log_of_normal(x * _F(8388608.0) if tiny else x)
    y = y - _F(15.942385) if tiny else y
    y = y if x < _F(np.inf) else x
    y = y if x != 0 else _F(-np.inf)
    return y if x >= 0 else _F(np.nan)


@inlined
def log1p_f32(x):  # type: ignore[no-untyped-def]
    """log(1 + x) of a float32 from 0 to 1."""
    u = _F(1) + x
    # What 1 + x lost is made good to first order.
    return _log_of_normal(u) + (x - (u - _F(1))) / u


@inlined
def log1p_any(x):  # type: ignore[no-untyped-def]
    """log(1 + x) of a float32, to 2 units in the last place; -inf at -1, NaN below it."""
    u = _F(1) + x
    lost = (x - (u - _F(1))) / u
    return log_f32(u) + (lost if abs(lost) < _F(1) else _F(0))


@inlined
def tail_f32(x):  # type: ignore[no-untyped-def]
    """exp(-x²/2), and the normal distribution's weight beyond |x|, to a relative 3e-7.

    The weight is exp(-x²/2) times a polynomial in 1 / (1 + 0.35 |x|), a least-squares fit weighted
    until its largest relative error, 3.2e-8, is near the least possible.
    """
    t = _F(1) / (_F(1) + _F(0.35) * abs(x))
    # Written out, since a loop over coefficients would keep the caller's loop from vector code.
    p = _F(-0.02911512)
    p = p * t + _F(0.14381891)
    p = p * t + _F(-0.255392)
    p = p * t + _F(0.15879764)
    p = p * t + _F(-0.02284413)
    p = p * t + _F(0.10539243)
    p = p * t + _F(0.11986302)
    p = p * t + _F(0.13985757)
    p = p * t + _F(0.13962166)
    e = exp_f32(x * x * _F(-0.5))
    return e, e * (p * t)


@inlined
def erf_f32(x):  # type: ignore[no-untyped-def]
    """erf of a float32, to 2 units in the last place.

    Below 1.2 a polynomial in x², fitted as that of `tail_f32` to 6e-10, beyond it that.
    """
    s = x * x
    p = s * _F(-7.97963276e-6) + _F(1.05947853e-4)
    p = p * s + _F(-8.37844389e-4)
    p = p * s + _F(5.21273352e-3)
    p = p * s + _F(-2.68620644e-2)
    p = p * s + _F(1.12837173e-1)
    p = p * s + _F(-3.76126349e-1)
    p = p * s + _F(0.128379167)
    large = _F(1) - _F(2) * tail_f32(x * _F(1.41421356))[1]
    return p * x + x if abs(x) < _F(1.2) else (large if x > 0 else -large)
