"""The incomplete gamma function, and how a gamma variable moves with its shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..errors import GraphError
from ..ops import special_arrays
from ..ops.primitive import OUT, Primitive

_TINY = 1e-300
_MANY = 400
_CHECK_EVERY = 16
# Beyond this shape an expansion in 1/√a is exact to 1e-6, and the series would be long.
_LARGE = 100.0


def _wide(*arrays: Any) -> tuple[Any, ...]:
    """The arrays in float64 and in one shape, and their namespace."""
    xp = backend.namespace(arrays[0])
    return (xp, *xp.broadcast_arrays(*[a.astype(np.float64) for a in arrays]))


def _terms(xp: Any, a: Any) -> int:
    """How many terms a series or fraction needs: some standard deviations."""
    top = float(backend.to_host(a.max())) if a.size else 0.0
    return _MANY if not top > 1 else _MANY + int(12 * top**0.5)


def _done(xp: Any, n: int, change: Any) -> bool:
    """True where nothing changes any more; looked at on the CPU only."""
    return xp is np and n % _CHECK_EVERY == 0 and not bool((change > 1e-17).any())


def _lower(a: Any, x: Any) -> Any:
    """`P(a, x) = ∫₀ˣ t^(a-1) e^(-t) dt / Γ(a)`.

    A series left of `a + 1`, a continued fraction right of it.

    Source: Numerical Recipes, Press et al., 2007, section 6.2.
    """
    dtype = a.dtype
    xp, a, x = _wide(a, x)
    front = xp.exp(a * xp.log(xp.maximum(x, _TINY)) - x - special_arrays.lgamma(a))
    left = x < a + 1
    near = xp.where(left, x, a)
    term = 1 / a
    total = term.copy()
    for n in range(1, _terms(xp, a)):
        term = term * near / (a + n)
        total = total + term
        if _done(xp, n, term / total):
            break
    far = xp.where(left, a + 2, x)
    b = far + 1 - a
    c, d = xp.full_like(b, 1 / _TINY), 1 / b
    h = d.copy()
    for n in range(1, _terms(xp, a)):
        factor = -n * (n - a)
        b = b + 2
        d, c = factor * d + b, b + factor / c
        d = 1 / xp.where(xp.abs(d) < _TINY, _TINY, d)
        c = xp.where(xp.abs(c) < _TINY, _TINY, c)
        h = h * d * c
        if _done(xp, n, xp.abs(d * c - 1)):
            break
    y = xp.where(left, front * total, 1 - front * h)
    y = xp.where(x <= 0, 0.0, xp.where(xp.isinf(x), 1.0, y))
    return xp.where(xp.isnan(x) | xp.isnan(a), np.nan, y).astype(dtype)


def _shape_slope(a: Any, log_x: Any) -> Any:
    """`d log x / da` of a gamma variable x of shape a, at a fixed value of its distribution.

    With `P(a, x) = x^a e^(-x)/Γ(a) · Σ cₙ`, `c₀ = 1/a` and `cₙ₊₁ = cₙ·x/(a+n+1)`, the derivative
    is `-(Σ cₙ·(log x - ψ(a)) - Σ cₙ·Σ 1/(a+k))`; for large a from the expansion of Cornish and
    Fisher.

    Source: Implicit Reparameterization Gradients, Figurnov et al., 2018.
    """
    dtype = log_x.dtype
    xp, a, log_x = _wide(a, log_x)
    x = xp.exp(log_x)
    large = a > _LARGE
    small_a, near = xp.where(large, 1.0, a), xp.where(large, 1.0, x)
    term = 1 / small_a
    harmonic = 1 / small_a
    total, slope = term.copy(), -term * harmonic
    for n in range(1, _MANY):
        term = term * near / (small_a + n)
        harmonic = harmonic + 1 / (small_a + n)
        total = total + term
        slope = slope - term * harmonic
        if _done(xp, n, term * harmonic / total):
            break
    near_log = xp.where(large, 0.0, log_x)
    series = -(total * (near_log - special_arrays.digamma(small_a)) + slope)
    big, far = xp.where(large, a, _LARGE), xp.where(large, x, _LARGE)
    root = xp.sqrt(big)
    z = 3 * root * ((far / big) ** (1 / 3) - 1 + 1 / (9 * big))
    moved = 1 + z / (2 * root) - (z**3 - 7 * z) / (72 * root**3)
    moved = moved + (6 * z**4 + 14 * z**2 - 32) / (1620 * big * big)
    return xp.where(large, moved / far, series).astype(dtype)


def _no_second(name: str) -> Any:
    def rule(*_: Any, **__: Any) -> Any:
        raise GraphError(
            f"{name}: its gradient cannot be differentiated again. Use first gradients, or the "
            "score function log_prob."
        )

    return rule


_LOWER_SLOPE = Primitive(
    "gammainc_slope",
    lambda a, x: _lower_slope(a, x),
    (_no_second("gammainc"), _no_second("gammainc")),
)
_SHAPE_SLOPE = Primitive(
    "gamma_slope", _shape_slope, (_no_second("Gamma.rsample"), _no_second("Gamma.rsample"))
)


def _density(a: Any, x: Any) -> Any:
    """`x^(a-1) e^(-x) / Γ(a)`, by operations that work on arrays and tensors."""
    from ..ops.elementwise import exp, log
    from ..ops.special_functions import lgamma

    return exp((a - 1) * log(x) - x - lgamma(a))


def _lower_slope(a: Any, x: Any) -> Any:
    """`dP/da`: minus the density times the way that x goes with a."""
    xp = backend.namespace(a)
    log_x = xp.log(xp.maximum(x, np.finfo(x.dtype).tiny))
    return -_density(a, x) * x * _shape_slope(a, log_x)


gammainc = Primitive(
    "gammainc",
    _lower,
    (
        lambda g, a, x: g * _LOWER_SLOPE(a, x),
        lambda g, a, x: g * _density(a, x),
    ),
    (0, 1),
)

# The logarithm of a gamma variable that was drawn for these shapes.
_LOG_GAMMA = Primitive(
    "log_standard_gamma",
    lambda a, *, drawn: drawn,
    (lambda g, a, out, *, drawn: g * _SHAPE_SLOPE(a, out),),
    (0, OUT),
)


def log_standard_gamma(concentration: Any) -> Any:
    """Logarithms of gamma variables of these shapes and rate 1, with gradients.

    Shapes below 1 are drawn as `G(a+1)·U^(1/a)`, whose logarithm does not underflow.

    Source: A Simple Method for Generating Gamma Variables, Marsaglia and Tsang, 2000.
    """
    from .utils import from_draw, host, rng

    shapes = host(concentration, concentration.shape)
    generator = rng()
    with np.errstate(all="ignore"):
        boosted = np.where(shapes < 1, shapes + 1, shapes)
        drawn = np.log(generator.standard_gamma(boosted))
        rest = np.log1p(-generator.random(shapes.shape)) / shapes
    drawn = drawn + np.where(shapes < 1, rest, 0.0)
    return _LOG_GAMMA(concentration, drawn=from_draw(drawn, concentration)._array)
