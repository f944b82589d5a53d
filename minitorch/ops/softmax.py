"""Log-sum-exp, softmax and log-softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, describe
from ..kernels import load_for
from . import comparison, shape
from . import elementwise as el
from .numpy_names import renamed
from .primitive import OUT, Primitive, cast
from .reduction import Dim, amax, axes_of, need_float, sum, sum_along


def logsumexp(input: Any, dim: Dim = (), keepdim: bool = False, **names: Any) -> Any:
    """`log Σ exp(input)` over the axes `dim`, without overflow."""
    if names:
        return renamed(logsumexp, locals())
    axes = axes_of("logsumexp", input.ndim, dim)
    if not input.ndim:
        return input.clone()
    if 0 in [input._array.shape[i] for i in axes]:
        return el.log(sum(el.exp(input), axes, keepdim))
    top = amax(input.detach(), axes, True)
    top = el.where(comparison.isfinite(top), top, el.zeros_like(top))
    total = el.log(sum(el.exp(input - top), axes, True)) + top
    return total if keepdim else shape.squeeze(total, axes)


def _kernels(axis: int, *arrays: Any) -> Any:
    """The compiled bodies, which take the last axis of contiguous arrays."""
    if axis != arrays[0].ndim - 1:
        return None
    return load_for("softmax", *arrays, contiguous=True)


def _softmax_forward(a: Any, *, axis: int) -> Any:
    if a.dtype in dtypes.HALF:
        return _softmax_forward(a.astype(np.float32), axis=axis).astype(a.dtype)
    if not a.size:
        return a.copy()
    kernels = _kernels(axis, a)
    if kernels is not None:
        return kernels.softmax(a)
    xp = backend.namespace(a)
    y = xp.exp(a - a.max(axis=axis, keepdims=True))
    y /= y.sum(axis=axis, keepdims=True)
    return y


def _log_softmax_forward(a: Any, *, axis: int) -> Any:
    if a.dtype in dtypes.HALF:
        return _log_softmax_forward(a.astype(np.float32), axis=axis).astype(a.dtype)
    if not a.size:
        return a.copy()
    kernels = _kernels(axis, a)
    if kernels is not None:
        return kernels.log_softmax(a)
    xp = backend.namespace(a)
    y = a - a.max(axis=axis, keepdims=True)
    y -= xp.log(xp.exp(y).sum(axis=axis, keepdims=True))
    return y


def _softmax_rule(g: Any, out: Any, *, axis: int) -> Any:
    kernels = _kernels(axis, g, out)
    if kernels is not None:
        return kernels.softmax_backward(g, out)
    return (g - sum_along(g * out, axis)) * out


def _log_softmax_rule(g: Any, out: Any, *, axis: int) -> Any:
    kernels = _kernels(axis, g, out)
    if kernels is not None:
        return kernels.log_softmax_backward(g, out)
    return g - el.exp(out) * sum_along(g, axis)


_SOFTMAX = Primitive("softmax", _softmax_forward, (_softmax_rule,), (OUT,))
_LOG_SOFTMAX = Primitive("log_softmax", _log_softmax_forward, (_log_softmax_rule,), (OUT,))


def _along(op: Primitive, input: Any, dim: int | None, dtype: Any) -> Any:
    x = cast(input, dtypes.of(dtype).numpy) if dtype is not None else input
    need_float(op.name, x._array)
    if dim is None:
        raise ArgumentError(
            f"{op.name}: dim must be named. Got None for {describe(x)}. Use dim=-1 for classes."
        )
    if not x.ndim:
        return shape.squeeze(_along(op, x.reshape(1), dim, None), 0)
    return op(x, axis=shape.axis_of(op.name, x.ndim, dim))


def softmax(input: Any, dim: int | None = None, *, dtype: Any = None, **names: Any) -> Any:
    """`exp(x) / Σ exp(x)` along `dim`.

    Raises:
        ArgumentError: No axis is named.
    """
    if names:
        return renamed(softmax, locals())
    return _along(_SOFTMAX, input, dim, dtype)


def log_softmax(input: Any, dim: int | None = None, *, dtype: Any = None, **names: Any) -> Any:
    """`x - log Σ exp(x)` along `dim`.

    Raises:
        ArgumentError: No axis is named.
    """
    if names:
        return renamed(log_softmax, locals())
    return _along(_LOG_SOFTMAX, input, dim, dtype)


def masked_softmax(input: Any, mask: Any, dim: int) -> Any:
    """softmax over the elements where `mask` is true; the others are 0, also where it never is.

    Half types are computed in float32; no constant stands for the masked elements.

    Args:
        input: f[…].
        mask: bool, broadcast to the input.
        dim: The axis of a distribution.

    Raises:
        DtypeError: The mask is not bool.
    """
    need_float("masked_softmax", input._array)
    if mask._array.dtype != np.bool_:
        raise DtypeError(
            f"masked_softmax: the mask must be bool, true where an element counts. Got "
            f"{describe(mask)}. Compare first: mask > 0."
        )
    half = input._array.dtype in dtypes.HALF
    x = cast(input, np.dtype(np.float32)) if half else input
    x = el.where(mask, x, -math.inf)
    top = amax(x.detach(), dim, True)
    e = el.exp(x - el.where(comparison.isfinite(top), top, 0.0))
    total = sum(e, dim, True)
    y = e / el.where(total.detach() == 0, 1.0, total)
    return cast(y, input._array.dtype) if half else y
