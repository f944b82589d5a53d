"""The error, gamma, Bessel and normal distribution functions, with gradients of any order."""

from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..errors import ArgumentError
from . import elementwise as el
from . import special_arrays as arrays
from .elementwise import erf, exp2, expm1, log1p, round, sigmoid
from .families import Binary, Unary
from .inplace import in_place
from .maths import logit, sinc, xlog1py, xlogy
from .primitive import OUT, cast, raw
from .softmax import log_softmax, logsumexp, softmax

_ROOT_PI = math.sqrt(math.pi)

erfc = Unary(
    "erfc",
    arrays.erfc,
    lambda g, a: g * el.exp(-(a * a)) * (-2 / _ROOT_PI),
    (0,),
    floating=True,
)
erfinv = Unary(
    "erfinv", arrays.erfinv, lambda g, o: g * el.exp(o * o) * (_ROOT_PI / 2), (OUT,), floating=True
)
erfcx = Unary(
    "erfcx", arrays.erfcx, lambda g, a, o: g * (2 * a * o - 2 / _ROOT_PI), (0, OUT), floating=True
)
lgamma = Unary("lgamma", arrays.lgamma, lambda g, a: g * digamma(a), (0,), floating=True)
digamma = Unary("digamma", arrays.digamma, lambda g, a: g * _polygamma(a, n=1), (0,), floating=True)
_polygamma = Unary(
    "polygamma",
    arrays.polygamma,
    lambda g, a, *, n: g * _polygamma(a, n=n + 1),
    (0,),
    floating=True,
)


def polygamma(n: int, input: Any) -> Any:
    """The derivative of order `n` of digamma.

    Raises:
        ArgumentError: `n` is negative.
    """
    if not isinstance(n, int):
        n, input = input, n  # the method is called as x.polygamma(n)
    if n < 0:
        raise ArgumentError(f"polygamma: n must not be negative. Got {n}.")
    return _polygamma(input, n=n) if n else digamma(input)


def mvlgamma(input: Any, p: int) -> Any:
    """The logarithm of the gamma function of dimension `p`.

    `log Γ_p(x) = p(p-1)/4 log π + Σ_j log Γ(x - j/2)`, j = 0 … p-1.

    Raises:
        ArgumentError: `p` is below 1.
    """
    if p < 1:
        raise ArgumentError(f"mvlgamma: p must be at least 1. Got {p}.")
    x = _floating(input)
    total = lgamma(x)
    for j in range(1, p):
        total = total + lgamma(x - j / 2)
    return total + p * (p - 1) / 4 * math.log(math.pi)


def _floating(x: Any) -> Any:
    return cast(x, dtypes.get_default_dtype().numpy) if raw(x).dtype.kind in "iub" else x


def _bessel(name: str, order: int, body: Any, rule: Any) -> Unary:
    return Unary(name, lambda a: body(a, order=order), rule, (0, OUT), floating=True)


def _over(a: Any, value: Any) -> Any:
    """`value / a`, and 1/2 at 0, where I₁(a)/a has that limit."""
    zero = a == 0
    return el.where(zero, el.zeros_like(a) + 0.5, value / el.where(zero, el.ones_like(a), a))


i0 = _bessel("i0", 0, arrays.bessel, lambda g, a, o: g * i1(a))
i1 = _bessel("i1", 1, arrays.bessel, lambda g, a, o: g * (i0(a) - _over(a, o)))
i0e = _bessel("i0e", 0, arrays.bessel_scaled, lambda g, a, o: g * (i1e(a) - el.sign(a) * o))
i1e = _bessel(
    "i1e", 1, arrays.bessel_scaled, lambda g, a, o: g * (i0e(a) - _over(a, o) - el.sign(a) * o)
)

_ZETA = Binary(
    "zeta", arrays.zeta, (None, lambda g, s, q: -g * s * zeta(s + 1, q)), (0, 1), floating=True
)


def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function `Σ (q+k)^-x`, k = 0, 1, …; differentiable in q."""
    return _ZETA.function(x, q)


def entr(input: Any) -> Any:
    """`-x log x`: 0 at 0, -inf below 0."""
    x = _floating(input)
    inside = el.where(x > 0, x, el.ones_like(x))
    return el.where(x < 0, el.zeros_like(x) - math.inf, -x * el.log(inside) + (x - x))


def ndtr(input: Any) -> Any:
    """The distribution function of the standard normal distribution."""
    return erfc(_floating(input) * -math.sqrt(0.5)) * 0.5


def ndtri(input: Any) -> Any:
    """The inverse of `ndtr`."""
    return erfinv(_floating(input) * 2 - 1) * math.sqrt(2)


log_ndtr = Unary(
    "log_ndtr",
    arrays.log_ndtr,
    lambda g, a, o: g * el.exp(-(a * a) / 2 - o) / math.sqrt(2 * math.pi),
    (0, OUT),
    floating=True,
)

expit, gammaln, psi, multigammaln = sigmoid, lgamma, digamma, mvlgamma
arctanh = el.atanh

erfc_, erfinv_ = in_place("erfc_", erfc), in_place("erfinv_", erfinv)
lgamma_, digamma_ = in_place("lgamma_", lgamma), in_place("digamma_", digamma)
mvlgamma_, i0_ = in_place("mvlgamma_", mvlgamma), in_place("i0_", i0)
polygamma_ = in_place("polygamma_", lambda x, n: polygamma(n, x))

__all__ = [
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp2",
    "expit",
    "expm1",
    "gammaln",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "log1p",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "polygamma",
    "psi",
    "round",
    "sinc",
    "softmax",
    "xlog1py",
    "xlogy",
    "zeta",
]
