"""GELU and SiLU on float32, one pass each, in blocks of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable

from .kernel import Kernel, kernel
from .scalars import exp_f32, logistic

_F = np.float32
_BLOCK = 4096
# Products are not reordered: parts of them would overflow.
_LOOSE = frozenset(("contract", "nsz", "arcp"))


@register_jitable
def _approximate(x):  # type: ignore[no-untyped-def]
    """0.5 (1 ± tanh z), z being what GELU's approximation takes the tanh of."""
    return logistic(x * (_F(1.5957691216057308) + x * x * _F(0.0713548162726)))


@register_jitable
def _normal(x):  # type: ignore[no-untyped-def]
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


@kernel(fastmath=_LOOSE)
def _silu(first, last, x, y):  # type: ignore[no-untyped-def]
    xs, ys = x[first * _BLOCK : last * _BLOCK], y[first * _BLOCK : last * _BLOCK]
    for i in range(len(xs)):
        ys[i] = xs[i] * logistic(xs[i])[0]


@kernel(fastmath=_LOOSE)
def _silu_backward(first, last, g, x, dx):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, last * _BLOCK
    gs, xs, ds = g[start:stop], x[start:stop], dx[start:stop]
    for i in range(len(xs)):
        s, rest = logistic(xs[i])
        ds[i] = gs[i] * (s + xs[i] * (s * rest))


@kernel(fastmath=_LOOSE)
def _gelu(first, last, x, y):  # type: ignore[no-untyped-def]
    xs, ys = x[first * _BLOCK : last * _BLOCK], y[first * _BLOCK : last * _BLOCK]
    for i in range(len(xs)):
        tail = _normal(xs[i])[1]
        rest = _F(1) - tail
        ys[i] = xs[i] * (tail if xs[i] < _F(0) else rest)


@kernel(fastmath=_LOOSE)
def _gelu_backward(first, last, g, x, dx):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, last * _BLOCK
    gs, xs, ds = g[start:stop], x[start:stop], dx[start:stop]
    for i in range(len(xs)):
        e, tail = _normal(xs[i])
        rest = _F(1) - tail
        cdf = tail if xs[i] < _F(0) else rest
        ds[i] = gs[i] * (cdf + xs[i] * (e * _F(0.3989422804014327)))


@kernel(fastmath=_LOOSE)
def _gelu_tanh(first, last, x, y):  # type: ignore[no-untyped-def]
    xs, ys = x[first * _BLOCK : last * _BLOCK], y[first * _BLOCK : last * _BLOCK]
    for i in range(len(xs)):
        ys[i] = xs[i] * _approximate(xs[i])[0]


@kernel(fastmath=_LOOSE)
def _gelu_tanh_backward(first, last, g, x, dx):  # type: ignore[no-untyped-def]
    start, stop = first * _BLOCK, last * _BLOCK
    gs, xs, ds = g[start:stop], x[start:stop], dx[start:stop]
    for i in range(len(xs)):
        s, rest = _approximate(xs[i])
        slope = _F(1.5957691216057308) + xs[i] * xs[i] * _F(0.2140644488178)
        ds[i] = gs[i] * (s + xs[i] * slope * (s * rest))


def _unary(body: Kernel) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        y = np.empty_like(x)
        body(-(-x.size // _BLOCK), x.reshape(-1), y.reshape(-1))
        return y

    return call


def _unary_backward(body: Kernel) -> Callable[[Any, Any], Any]:
    def call(g: Any, x: Any) -> Any:
        dx = np.empty_like(x)
        body(-(-x.size // _BLOCK), g.reshape(-1), x.reshape(-1), dx.reshape(-1))
        return dx

    return call


silu, silu_backward = _unary(_silu), _unary_backward(_silu_backward)
gelu, gelu_backward = _unary(_gelu), _unary_backward(_gelu_backward)
gelu_tanh, gelu_tanh_backward = _unary(_gelu_tanh), _unary_backward(_gelu_tanh_backward)
