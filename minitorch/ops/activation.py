"""Activation functions that are more than one elementwise operation, each one node.

Forward bodies run on arrays; the rules run on arrays and on Tensors, so they use only operators
and operations of `elementwise`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from . import elementwise as el
from .compiled import compiled
from .families import Unary

_SQRT_2 = math.sqrt(2)
_SQRT_2_PI = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_SLOW = 1 << 8  # elements from which compiled bodies pay where the plain ones are slow
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def _in_float32(body: Any) -> Any:
    """`body` computed in float32 for half types."""

    def call(a: Any, **params: Any) -> Any:
        if a.dtype in dtypes.HALF:
            return body(a.astype(np.float32), **params).astype(a.dtype)
        return body(a, **params)

    return call


def _leaky_forward(a: Any, *, slope: float) -> Any:
    return backend.namespace(a).where(a > 0, a, a * slope)


leaky_relu = compiled(
    Unary("leaky_relu", _leaky_forward, lambda g, a, *, slope: el.where(a > 0, g, g * slope), (0,)),
    "slope",
)


def _elu_forward(a: Any, *, alpha: float, scale: float) -> Any:
    xp = backend.namespace(a)
    return xp.where(a > 0, a * scale, xp.expm1(xp.minimum(a, 0)) * (alpha * scale))


def _elu_rule(g: Any, a: Any, *, alpha: float, scale: float) -> Any:
    return el.where(a > 0, g * scale, g * el.exp(el.clamp(a, max=0)) * (alpha * scale))


elu = compiled(Unary("elu", _in_float32(_elu_forward), _elu_rule, (0,)), "alpha", "scale")


def _silu_forward(a: Any) -> Any:
    return a * el.sigmoid_array(a)


def _silu_rule(g: Any, a: Any) -> Any:
    s = el.sigmoid(a)
    return g * (s * (1 + a * (1 - s)))


silu = compiled(Unary("silu", _in_float32(_silu_forward), _silu_rule, (0,)), least=_SLOW)


def _gelu_forward(a: Any) -> Any:
    return a * 0.5 * (1 + el.erf(a / _SQRT_2))


def _gelu_rule(g: Any, a: Any) -> Any:
    density = el.exp(a * a * -0.5) * (1 / math.sqrt(2 * math.pi))
    return g * (0.5 * (1 + el.erf(a / _SQRT_2)) + a * density)


gelu = compiled(Unary("gelu", _in_float32(_gelu_forward), _gelu_rule, (0,)), least=_SLOW)


def _gelu_tanh_forward(a: Any) -> Any:
    return a * 0.5 * (1 + backend.namespace(a).tanh(a * _SQRT_2_PI * (1 + a * a * _CUBIC)))


def _gelu_tanh_rule(g: Any, a: Any) -> Any:
    square = a * a
    t = el.tanh(a * _SQRT_2_PI * (1 + square * _CUBIC))
    slope = (1 - t * t) * (1 + square * (3 * _CUBIC)) * _SQRT_2_PI
    return g * (0.5 * (1 + t) + 0.5 * a * slope)


gelu_tanh = compiled(
    Unary("gelu_tanh", _in_float32(_gelu_tanh_forward), _gelu_tanh_rule, (0,)), least=_SLOW
)


def _softplus_forward(a: Any, *, beta: float, threshold: float) -> Any:
    xp, z = backend.namespace(a), a * beta
    return xp.where(z > threshold, a, (xp.log1p(xp.exp(-abs(z))) + xp.maximum(z, 0)) / beta)


def _softplus_rule(g: Any, a: Any, *, beta: float, threshold: float) -> Any:
    return el.where(a * beta > threshold, g, g * el.sigmoid(a * beta))


softplus = compiled(
    Unary("softplus", _in_float32(_softplus_forward), _softplus_rule, (0,)), "beta", "threshold"
)


def _logsigmoid_forward(a: Any) -> Any:
    xp = backend.namespace(a)
    return xp.minimum(a, 0) - xp.log1p(xp.exp(-abs(a)))


logsigmoid = compiled(
    Unary("logsigmoid", _in_float32(_logsigmoid_forward), lambda g, a: g * el.sigmoid(-a), (0,))
)


def _mish_forward(a: Any) -> Any:
    xp = backend.namespace(a)
    return a * xp.tanh(xp.log1p(xp.exp(-abs(a))) + xp.maximum(a, 0))


def _mish_rule(g: Any, a: Any) -> Any:
    t = el.tanh(softplus(a, beta=1, threshold=math.inf))
    return g * (t + a * (1 - t * t) * el.sigmoid(a))


mish = compiled(Unary("mish", _in_float32(_mish_forward), _mish_rule, (0,)))


def _between(g: Any, a: Any, low: float, high: float) -> Any:
    """`g` strictly inside of (low, high), else 0: at the corners PyTorch's gradient is 0."""
    return el.where((a > low) & (a < high), g, el.zeros_like(g))


hardtanh = compiled(
    Unary(
        "hardtanh",
        lambda a, *, low, high: backend.namespace(a).clip(a, low, high),
        lambda g, a, *, low, high: _between(g, a, low, high),
        (0,),
    ),
    "low",
    "high",
)
hardsigmoid = Unary(
    "hardsigmoid",
    _in_float32(lambda a: backend.namespace(a).clip(a + 3, 0, 6) / 6),
    lambda g, a: _between(g / 6, a, -3, 3),
    (0,),
)


def _hardswish_rule(g: Any, a: Any) -> Any:
    return el.where(a >= 3, g, _between(g * (a / 3 + 0.5), a, -3, 3))


hardswish = compiled(
    Unary(
        "hardswish",
        _in_float32(lambda a: a * backend.namespace(a).clip(a + 3, 0, 6) / 6),
        _hardswish_rule,
        (0,),
    )
)


def _threshold_forward(a: Any, *, threshold: float, value: float) -> Any:
    xp = backend.namespace(a)
    return xp.where(a > threshold, a, xp.full((), value, a.dtype))


threshold = Unary(
    "threshold",
    _threshold_forward,
    lambda g, a, *, threshold, value: _between(g, a, threshold, math.inf),
    (0,),
)
softsign = Unary(
    "softsign", lambda a: a / (1 + abs(a)), lambda g, a: g / ((1 + abs(a)) * (1 + abs(a))), (0,)
)
