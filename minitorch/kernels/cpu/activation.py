"""ReLU, GELU and SiLU on float32, one pass each, in parallel over blocks of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange
from numba.extending import register_jitable

from .compile import FAST, kernel
from .norm import exp_f32

_F = np.float32
_BLOCK = 4096


@register_jitable
def _sigmoid(x):  # type: ignore[no-untyped-def]
    e = exp_f32(-abs(x))
    return (_F(1) if x >= 0 else e) / (_F(1) + e)


@register_jitable
def _tanh_of_gelu(x):  # type: ignore[no-untyped-def]
    # tanh z = 2 sigmoid(2z) - 1
    return _F(2) * _sigmoid(x * _F(1.5957691216057308) * (_F(1) + x * x * _F(0.044715))) - _F(1)


@register_jitable
def _erfc_tail(z):  # type: ignore[no-untyped-def]
    """erfc(z) for z ≥ 0, to a relative 1.2e-7.

    Source: Press et al., Numerical Recipes in C, section 6.2 (erfcc), 1992.
    """
    t = _F(1) / (_F(1) + _F(0.5) * z)
    # Written out, since a loop over coefficients would keep the caller's loop from vector code.
    p = _F(0.17087277)
    p = p * t + _F(-0.82215223)
    p = p * t + _F(1.48851587)
    p = p * t + _F(-1.13520398)
    p = p * t + _F(0.27886807)
    p = p * t + _F(-0.18628806)
    p = p * t + _F(0.09678418)
    p = p * t + _F(0.37409196)
    p = p * t + _F(1.00002368)
    return t * exp_f32(-z * z - _F(1.26551223) + t * p)


@register_jitable
def _normal_tail(x):  # type: ignore[no-untyped-def]
    """The normal distribution's weight beyond |x|."""
    return _F(0.5) * _erfc_tail(abs(x) * _F(0.7071067811865476))


@kernel(fastmath=FAST)
def _silu(x, y):  # type: ignore[no-untyped-def]
    for block in prange((x.size + _BLOCK - 1) // _BLOCK):
        for i in range(block * _BLOCK, min(x.size, (block + 1) * _BLOCK)):
            y[i] = x[i] * _sigmoid(x[i])


@kernel(fastmath=FAST)
def _silu_backward(g, x, dx):  # type: ignore[no-untyped-def]
    for block in prange((x.size + _BLOCK - 1) // _BLOCK):
        for i in range(block * _BLOCK, min(x.size, (block + 1) * _BLOCK)):
            s = _sigmoid(x[i])
            dx[i] = g[i] * (s * (_F(1) + x[i] * (_F(1) - s)))


@kernel(fastmath=FAST)
def _gelu(x, y):  # type: ignore[no-untyped-def]
    for block in prange((x.size + _BLOCK - 1) // _BLOCK):
        for i in range(block * _BLOCK, min(x.size, (block + 1) * _BLOCK)):
            # x Φ(x) without a branch, which would keep the loop from vector code.
            y[i] = max(x[i], _F(0)) - abs(x[i]) * _normal_tail(x[i])


@kernel(fastmath=FAST)
def _gelu_backward(g, x, dx):  # type: ignore[no-untyped-def]
    for block in prange((x.size + _BLOCK - 1) // _BLOCK):
        start, stop = block * _BLOCK, min(x.size, (block + 1) * _BLOCK)
        # Slices and two loops: otherwise it is too much at once to become vector code.
        gs, xs, ds = g[start:stop], x[start:stop], dx[start:stop]
        for i in range(xs.size):
            ds[i] = _normal_tail(xs[i])
        for i in range(xs.size):
            density = exp_f32(xs[i] * xs[i] * _F(-0.5)) * _F(0.3989422804014327)
            tail = ds[i]
            rest = _F(1) - tail
            cdf = tail if xs[i] < _F(0) else rest
            ds[i] = gs[i] * (cdf + xs[i] * density)


@kernel(fastmath=FAST)
def _relu_backward(g, y, dx):  # type: ignore[no-untyped-def]
    for block in prange((y.size + _BLOCK - 1) // _BLOCK):
        for i in range(block * _BLOCK, min(y.size, (block + 1) * _BLOCK)):
            passed = g[i]  # read in any case: a branch would keep the loop from vector code
            dx[i] = passed if y[i] > 0 else _F(0)


@kernel(fastmath=FAST)
def _gelu_tanh(x, y):  # type: ignore[no-untyped-def]
    for block in prange((x.size + _BLOCK - 1) // _BLOCK):
        for i in range(block * _BLOCK, min(x.size, (block + 1) * _BLOCK)):
            y[i] = _F(0.5) * x[i] * (_F(1) + _tanh_of_gelu(x[i]))


@kernel(fastmath=FAST)
def _gelu_tanh_backward(g, x, dx):  # type: ignore[no-untyped-def]
    for block in prange((x.size + _BLOCK - 1) // _BLOCK):
        for i in range(block * _BLOCK, min(x.size, (block + 1) * _BLOCK)):
            t = _tanh_of_gelu(x[i])
            inner = _F(0.7978845608028654) * (_F(1) + x[i] * x[i] * _F(0.134145))
            dx[i] = g[i] * _F(0.5) * ((_F(1) + t) + x[i] * (_F(1) - t * t) * inner)


def _unary(body: Callable[..., None]) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        y = np.empty_like(x)
        body(x.reshape(-1), y.reshape(-1))
        return y

    return call


def _unary_backward(body: Callable[..., None]) -> Callable[[Any, Any], Any]:
    def call(g: Any, x: Any) -> Any:
        dx = np.empty_like(x)
        body(g.reshape(-1), x.reshape(-1), dx.reshape(-1))
        return dx

    return call


silu, silu_backward = _unary(_silu), _unary_backward(_silu_backward)
relu_backward = _unary_backward(_relu_backward)
gelu, gelu_backward = _unary(_gelu), _unary_backward(_gelu_backward)
gelu_tanh, gelu_tanh_backward = _unary(_gelu_tanh), _unary_backward(_gelu_tanh_backward)
