"""Products of matrices on arrays: the compiled ones where they pay, else those of the namespace.

Half types are multiplied in float32 and rounded once, as GPUs do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from .. import backend, dtypes
from ..kernels import load, load_for

# Multiplications below which OpenBLAS uses one thread too, and NumPy's own call is as fast.
LEAST = 1 << 18


def _kernels(a: Any, b: Any, bias: Any = None) -> Any:
    kernels = load_for("product", a, b, bias, least=0)
    return kernels if kernels is not None and kernels.takes(a.dtype) else None


def product(a: Any, b: Any, bias: Any = None) -> Any:
    """`a_MK @ b_KN + bias_N` of arrays of one dtype, float32 or wider."""
    if a.size * b.shape[1] >= LEAST:
        kernels = _kernels(a, b, bias)
        if kernels is not None:
            return kernels.product(a, b, bias)
    y = a.dot(b)
    if bias is not None:
        y += bias
    return y


def matmul(a: Any, b: Any) -> Any:
    """`a_…MK @ b_…KN` of arrays of one dtype with at least two axes; leading ones are broadcast."""
    if a.dtype in dtypes.HALF:
        return matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    if a.ndim == 2 == b.ndim:
        return product(a, b)
    if a.shape[:-2] == b.shape[:-2] and a.shape[-1] == b.shape[-2]:
        if a.size * b.shape[-1] >= LEAST and (kernels := _kernels(a, b)) is not None:
            y = kernels.batched(a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:]))
            return y.reshape(*a.shape[:-1], b.shape[-1])
    if b.ndim == 2 and a.size:
        return product(a.reshape(-1, a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    return backend.namespace(a).matmul(a, b)


def _rows(a: Any) -> Any:
    return a if a.ndim == 2 else a.reshape(math.prod(a.shape[:-1]), a.shape[-1])


def linear(x: Any, w: Any, bias: Any = None) -> Any:
    """`x_…K @ w_NK.T + bias_N` of arrays of one dtype, float32 or wider."""
    if type(x) is ndarray and x.size * w.shape[0] >= LEAST:
        kernels = load("product")
        if kernels is not None and kernels.takes(x.dtype):
            return kernels.linear(x, w, bias)
    y = product(_rows(x), w.T, bias)
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], w.shape[0])


def linear_gradients(g: Any, x: Any, w: Any, needs: Sequence[bool]) -> tuple[Any, Any, Any]:
    """The gradients of x_…K, w_NK and a bias_N from g_…N, that of `x @ w.T + bias`."""
    if type(g) is ndarray and g.size * w.shape[1] >= LEAST and g.dtype is x.dtype and any(needs):
        kernels = load("product")
        if kernels is not None and kernels.takes(g.dtype):
            grads: tuple[Any, Any, Any] = kernels.linear_gradients(g, x, w, needs)
            return grads
    g = _rows(g)
    return (
        product(g, w).reshape(x.shape) if needs[0] else None,
        product(g.T, _rows(x)) if needs[1] else None,
        column_sums(g) if needs[2] else None,
    )


def column_sums(x: Any) -> Any:
    """The sums of x_MN over M."""
    kernels = load_for("product", x)
    return x.sum(axis=0) if kernels is None else kernels.column_sums(x)


__all__ = ["column_sums", "linear", "linear_gradients", "matmul", "product"]
