"""Activations and their gradients as functions of one float32 each; `elementwise.py` runs them.

A value is `f(x, p, q)`, a gradient `f(g, saved, p, q)`; p and q are what the operation is given as
numbers. None has branches, so that loops over them become vector code.
"""

from __future__ import annotations

import numpy as np

from .kernel import inlined
from .scalars import (
    erf_f32,
    exp_any,
    exp_f32,
    expm1_f32,
    log1p_any,
    log1p_f32,
    log_f32,
    logistic,
    tail_f32,
    tanh_f32,
)

_F = np.float32


@inlined
def _approximate(x):  # type: ignore[no-untyped-def]
    """0.5 (1 ± tanh z), z being what GELU's approximation takes the tanh of."""
    return logistic(x * (_F(1.5957691216057308) + x * x * _F(0.0713548162726)))


def relu(x, p, q):  # type: ignore[no-untyped-def]
    return p if x <= p else x  # p is 0, of the dtype of x


def relu_slope(g, y, p, q):  # type: ignore[no-untyped-def]
    return p if y <= p else g


def silu(x, p, q):  # type: ignore[no-untyped-def]
    return x * logistic(x)[0]


def silu_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    s, rest = logistic(x)
    return g * (s + x * (s * rest))


def gelu(x, p, q):  # type: ignore[no-untyped-def]
    tail = tail_f32(x)[1]
    rest = _F(1) - tail
    return x * (tail if x < _F(0) else rest)


def gelu_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    e, tail = tail_f32(x)
    rest = _F(1) - tail
    cdf = tail if x < _F(0) else rest
    return g * (cdf + x * (e * _F(0.3989422804014327)))


def gelu_tanh(x, p, q):  # type: ignore[no-untyped-def]
    return x * _approximate(x)[0]


def gelu_tanh_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    s, rest = _approximate(x)
    slope = _F(1.5957691216057308) + x * x * _F(0.2140644488178)
    return g * (s + x * slope * (s * rest))


def sigmoid(x, p, q):  # type: ignore[no-untyped-def]
    return logistic(x)[0]


def sigmoid_slope(g, y, p, q):  # type: ignore[no-untyped-def]
    return g * (y * (_F(1) - y))


def tanh(x, p, q):  # type: ignore[no-untyped-def]
    return tanh_f32(x)


def tanh_slope(g, y, p, q):  # type: ignore[no-untyped-def]
    return g * (_F(1) - y * y)


def exp(x, p, q):  # type: ignore[no-untyped-def]
    return exp_any(x)


def exp_slope(g, y, p, q):  # type: ignore[no-untyped-def]
    return g * y


def log(x, p, q):  # type: ignore[no-untyped-def]
    return log_f32(x)


def log_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    return g / x


def sqrt(x, p, q):  # type: ignore[no-untyped-def]
    return np.sqrt(x)


def sqrt_slope(g, y, p, q):  # type: ignore[no-untyped-def]
    return g / (y + y)


def expm1(x, p, q):  # type: ignore[no-untyped-def]
    return expm1_f32(x)


def expm1_slope(g, y, p, q):  # type: ignore[no-untyped-def]
    return g * (y + _F(1))


def log1p(x, p, q):  # type: ignore[no-untyped-def]
    return log1p_any(x)


def log1p_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    return g / (x + _F(1))


def erf(x, p, q):  # type: ignore[no-untyped-def]
    return erf_f32(x)


def erf_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    return g * exp_f32(-x * x) * _F(1.1283791670955126)


def leaky_relu(x, slope, q):  # type: ignore[no-untyped-def]
    return x if x > _F(0) else x * slope


def leaky_relu_slope(g, x, slope, q):  # type: ignore[no-untyped-def]
    return g if x > _F(0) else g * slope


def elu(x, alpha, scale):  # type: ignore[no-untyped-def]
    low = expm1_f32(min(x, _F(0))) * (alpha * scale)
    return x * scale if x > _F(0) else low


def elu_slope(g, x, alpha, scale):  # type: ignore[no-untyped-def]
    low = exp_f32(min(x, _F(0))) * (alpha * scale)
    return g * (scale if x > _F(0) else low)


def softplus(x, beta, threshold):  # type: ignore[no-untyped-def]
    z = x * beta
    y = (log1p_f32(exp_f32(-abs(z))) + max(z, _F(0))) / beta
    return x if z > threshold else y


def softplus_slope(g, x, beta, threshold):  # type: ignore[no-untyped-def]
    s = logistic(x * beta)[0]
    return g if x * beta > threshold else g * s


def logsigmoid(x, p, q):  # type: ignore[no-untyped-def]
    return min(x, _F(0)) - log1p_f32(exp_f32(-abs(x)))


def logsigmoid_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    return g * logistic(-x)[0]


@inlined
def _tanh_of_softplus(x):  # type: ignore[no-untyped-def]
    """tanh(log(1 + exp x)), a quotient of polynomials in exp(-|x|), and 1 minus its square."""
    e = exp_f32(-abs(x))
    positive = x > _F(0)
    # (n² + 2n) / (n² + 2n + 2) with n = exp x, for x > 0 with both parts divided by n²
    up = _F(1) + _F(2) * e if positive else e * (e + _F(2))
    rest = _F(2) * e * e if positive else _F(2)
    part = _F(1) / (up + rest)
    t = up * part
    return t, rest * part * (_F(1) + t)


def mish(x, p, q):  # type: ignore[no-untyped-def]
    return x * _tanh_of_softplus(x)[0]


def mish_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    t, rest = _tanh_of_softplus(x)
    return g * (t + x * rest * logistic(x)[0])


def hardswish(x, p, q):  # type: ignore[no-untyped-def]
    return x * min(max(x + _F(3), _F(0)), _F(6)) / _F(6)


def hardswish_slope(g, x, p, q):  # type: ignore[no-untyped-def]
    inside = g * (x / _F(3) + _F(0.5)) if x > _F(-3) else _F(0)
    inside = inside if x < _F(3) else _F(0)
    return g if x >= _F(3) else inside


def hardtanh(x, low, high):  # type: ignore[no-untyped-def]
    return low if x < low else (high if x > high else x)


def hardtanh_slope(g, x, low, high):  # type: ignore[no-untyped-def]
    return (g if x < high else _F(0)) if x > low else _F(0)
