"""Special functions on arrays, computed in float64 by vectorised series and expansions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import backend

_SERIES_TERMS = 60
_FRACTION_TERMS = 60
_SWITCH = 2.5  # from here the continued fraction of erfc is exact
_SHIFT = 12  # from here the asymptotic series of the gamma family are exact
_FARTHEST = 1000  # polygamma of order 2 and more is NaN left of here
_BESSEL_SWITCH = 20.0

# B(2k) of the Bernoulli numbers, k = 1 …
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` computed in float64, with the result in the dtype that came."""

    def call(a: Any, **options: Any) -> Any:
        xp = backend.namespace(a)
        with np.errstate(all="ignore"):
            y = function(xp, a.astype(np.float64), **options)
        return y.astype(a.dtype)

    return call


def _tail(xp: Any, x: Any) -> Any:
    """`exp(x²) erfc(x)` for x ≥ 2.5 by its continued fraction."""
    fraction = x
    for n in range(_FRACTION_TERMS, 0, -1):
        fraction = x + (n / 2) / fraction
    return 1 / (math.sqrt(math.pi) * fraction)


def _erf_near(xp: Any, x: Any) -> Any:
    """erf for |x| ≤ 2.5 by its series."""
    term = total = x
    for n in range(1, _SERIES_TERMS):
        term = term * (2 * x * x) / (2 * n + 1)
        total = total + term
    return 2 / math.sqrt(math.pi) * xp.exp(-x * x) * total


def _erf(xp: Any, x: Any) -> Any:
    """A Maclaurin series near 0, a continued fraction beyond.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.6 and 7.1.14, 1964.
    """
    near = _erf_near(xp, xp.clip(x, -_SWITCH, _SWITCH))
    size = xp.maximum(xp.abs(x), _SWITCH)
    far = xp.sign(x) * (1 - xp.exp(-size * size) * _tail(xp, size))
    return xp.where(xp.abs(x) < _SWITCH, near, far)


def _erfcx(xp: Any, x: Any) -> Any:
    """`exp(x²) erfc(x)`; by the fraction from 2.5 on, by 1 - erf below."""
    near = xp.exp(x * x) * (1 - _erf(xp, x))
    return xp.where(x < _SWITCH, near, _tail(xp, xp.maximum(x, _SWITCH)))


def _erfc(xp: Any, x: Any) -> Any:
    size = xp.maximum(x, _SWITCH)
    return xp.where(x < _SWITCH, 1 - _erf(xp, x), xp.exp(-size * size) * _tail(xp, size))


def _erfinv(xp: Any, y: Any) -> Any:
    """Winitzki's approximation, made exact by Newton-Halley steps on the smaller of the tails."""
    size = xp.abs(y)
    inside = xp.where(size < 1, size, 0.5)
    log = xp.log1p(-inside * inside)
    half = 2 / (math.pi * 0.147) + log / 2
    x = xp.sqrt(xp.maximum(xp.sqrt(half * half - log / 0.147) - half, 0.0))
    for _ in range(3):
        error = xp.where(inside < 0.5, _erf(xp, x) - inside, (1 - inside) - _erfc(xp, x))
        step = error * (math.sqrt(math.pi) / 2) * xp.exp(x * x)
        x = x - step / (1 + x * step)
    x = xp.where(size < 1, x, xp.where(size == 1, math.inf, math.nan))
    return xp.sign(y) * x


def _lgamma_right(xp: Any, x: Any) -> Any:
    """log Γ(x) for x > 0: the recurrence up to 12, then Stirling's series."""
    product = xp.ones_like(x)
    shifted = x
    for _ in range(_SHIFT):
        small = shifted < _SHIFT
        product = xp.where(small, product * shifted, product)
        shifted = xp.where(small, shifted + 1, shifted)
    series, power = xp.zeros_like(x), 1 / shifted
    for k, b in enumerate(_BERNOULLI, 1):
        series = series + b / (2 * k * (2 * k - 1)) * power
        power = power / (shifted * shifted)
    stirling = (shifted - 0.5) * xp.log(shifted) - shifted + 0.5 * math.log(2 * math.pi)
    return stirling + series - xp.log(product)


def _lgamma(xp: Any, x: Any) -> Any:
    """Reflection on the left: log Γ(x) = log(π / |sin πx|) - log Γ(1-x); exact zeros at 1 and 2."""
    left = x <= 0
    right = _lgamma_right(xp, xp.where(left, 1 - x, x))
    sine = xp.abs(xp.sin(math.pi * (x - xp.rint(x))))
    y = xp.where(
        left, xp.where(x == xp.floor(x), math.inf, math.log(math.pi) - xp.log(sine) - right), right
    )
    y = xp.where((x == 1) | (x == 2), 0.0, y)
    return xp.where(xp.isinf(x), math.inf, y)


def _digamma(xp: Any, x: Any) -> Any:
    left = x <= 0
    point = xp.where(left, 1 - x, x)
    total = xp.zeros_like(x)
    for _ in range(_SHIFT):
        small = point < _SHIFT
        total = xp.where(small, total - 1 / point, total)
        point = xp.where(small, point + 1, point)
    series, power = xp.zeros_like(x), 1 / (point * point)
    for k, b in enumerate(_BERNOULLI, 1):
        series = series + b / (2 * k) * power
        power = power / (point * point)
    y = total + xp.log(point) - 0.5 / point - series
    turn = math.pi * (x - xp.rint(x))
    y = xp.where(left, y - math.pi / xp.tan(turn), y)
    pole = xp.where(x == 0, xp.copysign(math.inf, -x), math.nan)
    return xp.where(left & (x == xp.floor(x)), pole, y)


def _hurwitz(xp: Any, s: Any, q: Any, reach: int = _SHIFT) -> Any:
    """ζ(s, q) = Σ (q+k)^-s for q > -reach by Euler and Maclaurin's formula."""
    total = xp.zeros_like(q)
    for k in range(reach):
        total = total + (q + k) ** (-s)
    a = q + reach
    total = total + a ** (1 - s) / (s - 1) + 0.5 * a ** (-s)
    factor, power = s * 1.0, a ** (-s - 1)
    for k, b in enumerate(_BERNOULLI, 1):
        total = total + b / math.factorial(2 * k) * factor * power
        factor = factor * (s + 2 * k - 1) * (s + 2 * k)
        power = power / (a * a)
    return total


def _polygamma(xp: Any, x: Any, *, n: int) -> Any:
    """(-1)^(n+1) n! ζ(n+1, x); the recurrence moves negative x to the right."""
    if n == 0:
        return _digamma(xp, x)
    if n == 1:
        left = x <= 0
        right = _hurwitz(xp, 2, xp.where(left, 1 - x, x))
        sine = xp.sin(math.pi * (x - xp.rint(x)))
        y = xp.where(left, (math.pi / sine) ** 2 - right, right)
        return xp.where(left & (x == xp.floor(x)), math.inf, y)
    sign = -1.0 if n % 2 == 0 else 1.0
    least = float(xp.where(xp.isfinite(x), x, 0.0).min()) if x.size else 0.0
    reach = min(_SHIFT + max(0, math.ceil(-least)), _FARTHEST)
    value = sign * math.factorial(n) * _hurwitz(xp, n + 1, x, reach)
    value = xp.where((x <= 0) & (x == xp.floor(x)), sign * math.inf, value)
    return xp.where(x + reach > 1, value, math.nan)


def _bessel_scaled(xp: Any, x: Any, *, order: int) -> Any:
    """`exp(-|x|) I_order(x)` for the orders 0 and 1: power series, then Hankel's expansion."""
    near = xp.minimum(xp.abs(x), _BESSEL_SWITCH)
    quarter = near * near / 4
    term = total = (near / 2) ** order
    for k in range(1, _SERIES_TERMS):
        term = term * quarter / (k * (k + order))
        total = total + term
    far = xp.maximum(xp.abs(x), _BESSEL_SWITCH)
    step = tail = xp.ones_like(far)
    for k in range(1, 30):
        step = step * -(4 * order * order - (2 * k - 1) ** 2) / (8 * k * far)
        tail = tail + step
    y = xp.where(
        xp.abs(x) < _BESSEL_SWITCH, total * xp.exp(-near), tail / xp.sqrt(2 * math.pi * far)
    )
    return y * xp.sign(x) if order else y


def _bessel(xp: Any, x: Any, *, order: int) -> Any:
    return _bessel_scaled(xp, x, order=order) * xp.exp(xp.abs(x))


def _log_ndtr(xp: Any, x: Any) -> Any:
    """log of the normal distribution function, by the scaled tail on the left."""
    left = xp.minimum(x, 0.0) / -math.sqrt(2)
    tail = xp.log(_erfcx(xp, left) / 2) - left * left
    right = xp.log1p(-_erfc(xp, xp.maximum(x, -1.0) / math.sqrt(2)) / 2)
    return xp.where(x < -1, tail, right)


def zeta(s: Any, q: Any) -> Any:
    """The Hurwitz zeta function of two arrays of one dtype: NaN for s < 1, inf at s = 1."""
    xp = backend.namespace(q)
    s64, q64 = s.astype(np.float64), q.astype(np.float64)
    with np.errstate(all="ignore"):
        y = _hurwitz(xp, xp.where(s64 > 1, s64, 2.0), xp.where(q64 > 0, q64, 1.0))
        y = xp.where(q64 > 0, y, xp.where(q64 == xp.floor(q64), math.inf, math.nan))
        y = xp.where(s64 > 1, y, xp.where(s64 == 1, math.inf, math.nan))
    return y.astype(q.dtype)


erf = in_float64(_erf)
erfc = in_float64(_erfc)
erfcx = in_float64(_erfcx)
erfinv = in_float64(_erfinv)
lgamma = in_float64(_lgamma)
digamma = in_float64(_digamma)
polygamma = in_float64(_polygamma)
bessel = in_float64(_bessel)
bessel_scaled = in_float64(_bessel_scaled)
log_ndtr = in_float64(_log_ndtr)
