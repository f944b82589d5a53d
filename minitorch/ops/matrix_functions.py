"""Norms, powers and exponentials of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, ShapeError, describe
from . import elementwise as el
from . import joining, reduction, shape
from .decomposition import svdvals
from .matrix_checks import check_matrix, eye_like, gufunc, product, swap
from .primitive import Primitive, cast, raw, wrap
from .solving import cut_off, inv

# ---- norms ---------------------------------------------------------------------------------------


def _prepared(name: str, x: Any, dtype: Any) -> Any:
    if dtype is not None:
        x = cast(x, dtypes.of(dtype).numpy)
    reduction.need_float(name, x._array)
    return x


def vector_norm(
    x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """`(Σ |x|^ord)^(1/ord)` over the axes `dim`; the gradient at 0 is 0.

    Args:
        x: f[...] or complex.
        ord: Any number, inf, -inf or 0 (how many are not 0).
        dim: The axes; None for all.
        keepdim: Keep the reduced axes with length 1.
        dtype: Compute in this dtype.

    Raises:
        ShapeError: Nothing to take the largest or smallest of.
    """
    x = _prepared("vector_norm", x, dtype)
    axes = reduction.axes_of("vector_norm", x.ndim, dim)
    if (ord < 0 or ord == math.inf) and 0 in [x.shape[i] for i in axes]:
        raise ShapeError(
            f"vector_norm: the order {ord} needs an element. Got {describe(x)}, axes {axes}. "
            "Use an order from 0 on."
        )
    if not x.ndim:
        return el.abs(x) if ord else el.sign(el.abs(x))
    if ord < 0 and ord != -math.inf:
        return el.pow(reduction.sum(el.pow(el.abs(x), ord), axes, keepdim), 1 / ord)
    if not axes:
        return el.abs(x)
    if len(axes) == x.ndim and 0 not in x.shape and dim is None and not keepdim:
        return reduction.norm(shape.reshape(x, -1), ord, 0)
    return reduction.norm(x, ord, axes, keepdim)


_BY_SUMS = {1: (0, "amax"), -1: (0, "amin"), math.inf: (1, "amax"), -math.inf: (1, "amin")}


def matrix_norm(
    A: Any,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The norm of matrices over two axes.

    Args:
        A: f[..., m, n] or complex.
        ord: `"fro"`, `"nuc"` (the sum of singular values), 2, -2 (largest, smallest singular
            value), 1, -1 (largest, smallest column sum), inf, -inf (row sums).
        dim: The two axes.
        keepdim: Keep them with length 1.
        dtype: Compute in this dtype.

    Raises:
        ArgumentError: Another order.
        ShapeError: Not two different axes.
    """
    A = _prepared("matrix_norm", A, dtype)
    if A.ndim < 2 or len(tuple(dim)) != 2:
        raise ShapeError(
            f"matrix_norm: two axes are needed. Got {describe(A)}, dim={dim}. Use vector_norm."
        )
    rows, columns = reduction.axes_of("matrix_norm", A.ndim, tuple(dim))
    if ord == "fro":
        return reduction.norm(A, 2, (rows, columns), keepdim)
    if ord in _BY_SUMS:
        first, best = _BY_SUMS[ord]
        summed, left = (rows, columns) if first == 0 else (columns, rows)
        sums = reduction.sum(el.abs(A), summed, True)
        out = getattr(reduction, best)(sums, left, True)
    elif ord in ("nuc", 2, -2):
        values = svdvals(shape.movedim(A, (rows, columns), (-2, -1)))
        kind = {"nuc": "sum", 2: "amax", -2: "amin"}[ord]
        out = getattr(reduction, kind)(values, -1)
        for axis in sorted((rows, columns)):
            out = shape.unsqueeze(out, axis)
    else:
        raise ArgumentError(
            f"matrix_norm: ord must be 'fro', 'nuc', ±1, ±2 or ±inf. Got {ord!r}. "
            "Use vector_norm for other orders."
        )
    return out if keepdim else shape.squeeze(out, (rows, columns))


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """`vector_norm` or `matrix_norm`, by the number of axes in `dim` and by `ord`.

    Args:
        A: f[...] or complex.
        ord: None for the root of the sum of squares over `dim`, else as for the two.
        dim: One axis, two axes, or None for all.
        keepdim: Keep the reduced axes with length 1.
        dtype: Compute in this dtype.
    """
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is None:
        if A.ndim == 1 and not isinstance(ord, str):
            return vector_norm(A, ord, None, keepdim, dtype=dtype)
        if A.ndim != 2:
            raise ShapeError(
                f"norm: with an order and no dim, 1 or 2 axes are needed. Got {describe(A)}. "
                "Name the axes."
            )
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype)
    dims = (dim,) if isinstance(dim, int | np.integer) else tuple(dim)
    if len(dims) == 2:
        return matrix_norm(A, ord, dims, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise ArgumentError(
            f"norm: the order {ord!r} is one of matrices and needs two axes. Got dim={dim}."
        )
    return vector_norm(A, ord, dims, keepdim, dtype=dtype)


def cond(A: Any, p: Any = None) -> Any:
    """The condition number `‖A‖ ‖A⁻¹‖`; for None, 2 and -2 from singular values.

    Args:
        A: f[..., n, n].
        p: Order of the norm, as for `matrix_norm`; None for 2.
    """
    if p in (None, 2, -2):
        values = svdvals(A)
        first, last = values[..., 0], values[..., -1]
        return last / first if p == -2 else first / last
    check_matrix("cond", A, square=True)
    return matrix_norm(A, p) * matrix_norm(inv(A), p)


def matrix_rank(
    A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """How many singular values are above `max(atol, rtol * largest)` (int64).

    Args:
        A: f[..., m, n].
        tol: PyTorch's older name for `atol`, with `rtol` 0.
        hermitian: A equals its own conjugate transpose.
        atol, rtol: See above.
    """
    check_matrix("matrix_rank", A, square=hermitian)
    if tol is not None:
        atol, rtol = tol, 0.0
    a = A._array
    xp = backend.namespace(a)
    if not a.size:
        return wrap(xp.zeros(a.shape[:-2], np.int64))
    if hermitian:
        values = xp.abs(gufunc("matrix_rank", xp.linalg.eigvalsh, a))
    else:
        values = gufunc("matrix_rank", xp.linalg.svd, a, compute_uv=False)
    return wrap(xp.asarray((values > cut_off(values, a.shape[-2:], raw(atol), raw(rtol))).sum(-1)))


# ---- powers and exponentials ---------------------------------------------------------------------


def matrix_power(A: Any, n: int) -> Any:
    """`A` multiplied `n` times with itself; with its inverse for negative `n`.

    Args:
        A: f[..., m, m].
        n: A whole number; 0 gives the identity.
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"matrix_power: the matrices must be square. Got {describe(A)}.")
    if n == 0:
        return shape.broadcast_to(eye_like(A), A.shape).clone()
    base, n = (inv(A), -n) if n < 0 else (A, n)
    out = None
    while n:
        if n & 1:
            out = base if out is None else product(out, base)
        n >>= 1
        base = product(base, base) if n else base
    return out.clone() if out is A else out


# Padé numerator of degree 13 of exp; it is exact to float64 up to this norm.
_PADE = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
_PADE_NORM = 5.371920351148152


def _exp_forward(a: Any) -> Any:
    """Scaling, a Padé approximant and squaring.

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.
    """
    xp = backend.namespace(a)
    if not a.size:
        return a.copy()
    size = float(xp.abs(a).sum(-2).max())
    squarings = max(0, math.ceil(math.log2(size / _PADE_NORM))) if 0 < size < math.inf else 0
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) / 2**squarings
    power = xp.zeros_like(wide)
    power[...] = xp.eye(a.shape[-1], dtype=wide.dtype)
    even, odd = power * _PADE[0], xp.zeros_like(wide)
    for k, factor in enumerate(_PADE[1:], 1):
        power = xp.matmul(power, wide)
        if k % 2:
            odd = odd + factor * power
        else:
            even = even + factor * power
    out = gufunc("matrix_exp", xp.linalg.solve, even - odd, even + odd)
    for _ in range(squarings):
        out = xp.matmul(out, out)
    return out.astype(a.dtype)


def _exp_rule(g: Any, a: Any) -> Any:
    """The upper right block of `exp [[Aᵀ, g], [0, Aᵀ]]`."""
    n = raw(a).shape[-1]
    t = swap(a)
    above = joining.cat([t, g], -1)
    below = joining.cat([el.zeros_like(t), t], -1)
    return _EXP(joining.cat([above, below], -2))[..., :n, n:]


_EXP = Primitive("matrix_exp", _exp_forward, (_exp_rule,), (0,))


def matrix_exp(A: Any) -> Any:
    """The matrix exponential `Σ A^k / k!` of square matrices, f[..., n, n].

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.
    """
    check_matrix("matrix_exp", A, square=True)
    return _EXP(A)
