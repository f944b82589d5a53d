"""LU factors with pivots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import backend
from ..errors import ArgumentError, ShapeError, describe
from . import joining, primitive, shape
from .matrix_checks import check_matrix, mH, product, tril_of, triu_of
from .primitive import raw, wrap
from .several import Several
from .solving import SOLVE, solve_triangular, solved


class LU(NamedTuple):
    """What `lu` returns."""

    P: Any
    L: Any
    U: Any


class LUFactor(NamedTuple):
    """What `lu_factor` returns."""

    LU: Any
    pivots: Any


# ---- LU ------------------------------------------------------------------------------------------


def _eliminated(a: Any) -> tuple[Any, Any]:
    """`L - 1 + U` in one array and the order of the rows, by elimination with pivots."""
    xp = backend.namespace(a)
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    lu = xp.ascontiguousarray(a).reshape(-1, m, n).copy()
    order = xp.zeros((lu.shape[0], m), np.int64)
    order[...] = xp.arange(m)
    every = xp.arange(lu.shape[0])
    for j in range(min(m, n)):
        best = _size(lu[:, j:, j]).argmax(1) + j
        for part in (lu, order):
            held = part[every, best].copy()
            part[every, best] = part[:, j]
            part[:, j] = held
        pivot = lu[:, j, j]
        lu[:, j + 1 :, j] /= xp.where(pivot == 0, 1, pivot)[:, None]
        lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return lu.reshape(a.shape), order.reshape(*batch, m)


def _size(x: Any) -> Any:
    """By what LAPACK chooses pivots: `|re| + |im|` for complex numbers."""
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else abs(x)


def _lu_forward(a: Any) -> tuple[Any, ...]:
    lu, _ = _eliminated(a)
    return _parts(lu)


def _parts(lu: Any) -> tuple[Any, Any]:
    """The unit lower and the upper triangular factor; for arrays and Tensors."""
    m, n = raw(lu).shape[-2:]
    k = min(m, n)
    lower = tril_of(lu[..., :, :k], -1)
    eye = backend.namespace(raw(lu)).eye(m, k, dtype=raw(lu).dtype)
    eye = wrap(eye) if isinstance(lu, primitive.Tensor) else eye
    return lower + eye, triu_of(lu[..., :k, :])


def _lu_rule(grads: Any, outputs: Any) -> Any:
    (gl, gu), (lower, upper) = grads, outputs
    core: Any = 0
    if gl is not None:
        core = core + tril_of(product(mH(lower), gl), -1)
    if gu is not None:
        core = core + triu_of(product(gu, mH(upper)))
    half = SOLVE(mH(lower), core)
    return mH(SOLVE(upper, mH(half)))


_LU = Several("lu", _lu_forward, _lu_rule)


def lu(A: Any, *, pivot: bool = True) -> LU:
    """`A = P L U` with a permutation, a unit lower and an upper triangular factor.

    Args:
        A: f[..., m, n].
        pivot: Must be True.
    """
    if not pivot:
        raise ArgumentError("lu: only pivot=True is offered. Got pivot=False. Leave it out.")
    check_matrix("lu", A)
    m, n = A.shape[-2:]
    k = min(m, n)
    xp = backend.namespace(A._array)
    _, order = _eliminated(A._array)
    rows = wrap(xp.eye(m, dtype=A._array.dtype)[order])  # Pᵀ
    PA = product(rows, A)
    L, U = _LU(PA[..., :k, :k])
    if m > n:
        rest = solve_triangular(U, PA[..., k:, :], upper=True, left=False)
        L = joining.cat([L, rest], -2)
    if n > m:
        U = joining.cat([U, solved(L, PA[..., k:])], -1)
    return LU(shape.mT(rows), L, U)


def lu_factor(A: Any, *, pivot: bool = True) -> LUFactor:
    """The factors of `lu` in one tensor, and LAPACK's row exchanges, counted from 1 (int32)."""
    P, L, U = lu(A, pivot=pivot)
    m, n = A.shape[-2:]
    lower = tril_of(L, -1)
    wide = [lower, L.new_zeros((*L.shape[:-1], n - L.shape[-1]))]
    tall = [U, U.new_zeros((*U.shape[:-2], m - U.shape[-2], n))]
    packed = joining.cat(wide, -1) + joining.cat(tall, -2)
    return LUFactor(packed, wrap(_exchanges(P._array, min(m, n))))


def _exchanges(p: Any, k: int) -> Any:
    """The row exchanges that make the permutation `P`."""
    xp = backend.namespace(p)
    m = p.shape[-1]
    order = p.argmax(-2).reshape(-1, m)
    now = xp.zeros_like(order)
    now[...] = xp.arange(m)
    out = xp.zeros((order.shape[0], k), np.int32)
    every = xp.arange(order.shape[0])
    for j in range(k):
        place = (now == order[:, j, None]).argmax(1)
        out[:, j] = place + 1
        held = now[every, place].copy()
        now[every, place] = now[:, j]
        now[:, j] = held
    return out.reshape(*p.shape[:-2], k)


def _order_of(pivots: Any, m: int) -> Any:
    """The order of rows that the exchanges make."""
    xp = backend.namespace(pivots)
    flat = pivots.reshape(-1, pivots.shape[-1]) - 1
    now = xp.zeros((flat.shape[0], m), np.int64)
    now[...] = xp.arange(m)
    every = xp.arange(flat.shape[0])
    for j in range(flat.shape[1]):
        held = now[every, flat[:, j]].copy()
        now[every, flat[:, j]] = now[:, j]
        now[:, j] = held
    return now.reshape(*pivots.shape[:-1], m)


def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """`X` with `A X = B` for the result of `lu_factor(A)`.

    Args:
        LU, pivots: That result, f[..., n, n] and i32[..., n].
        B: f[..., n, k].
        left: False for `X A = B`, with B of f[..., k, n].
        adjoint: With `Aᴴ` in place of A.
    """
    check_matrix("lu_solve", LU, square=True)
    check_matrix("lu_solve", LU, B)
    if LU.shape[-1] != B.shape[-2 if left else -1]:
        raise ShapeError(
            f"lu_solve: the sizes of the factors and of the right sides must fit. "
            f"Got {describe(LU)} and {describe(B)}."
        )
    L, U = _parts(LU)
    order = _order_of(pivots._array, LU.shape[-1])
    rows = wrap(backend.namespace(order).eye(LU.shape[-1], dtype=LU._array.dtype)[order])
    A = product(shape.mT(rows), product(L, U))
    if not left:
        return shape.mT(solved(shape.mT(mH(A) if adjoint else A), shape.mT(B)))
    return solved(mH(A) if adjoint else A, B)
