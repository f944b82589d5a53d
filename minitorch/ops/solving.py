"""Inverses, determinants and linear equations."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import backend
from ..errors import ShapeError, describe
from . import elementwise as el
from . import reduction, shape
from .complex_numbers import conj, imag, is_complex, real_of
from .matrix_checks import (
    check_matrix,
    eye_like,
    gufunc,
    mH,
    product,
    swap,
    tril_of,
    triu_of,
)
from .primitive import OUT, Primitive, finish_one, raw, wrap


class InverseInfo(NamedTuple):
    """What `inv_ex` and its siblings return: the result, and 0 where it exists."""

    inverse: Any
    info: Any


class SignAndLog(NamedTuple):
    """What `slogdet` returns."""

    sign: Any
    logabsdet: Any


class LeastSquares(NamedTuple):
    """What `lstsq` returns."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


# ---- inverse and equations -----------------------------------------------------------------------


def _inv_forward(a: Any) -> Any:
    return gufunc("inv", backend.namespace(a).linalg.inv, a)


def _inv_rule(g: Any, out: Any) -> Any:
    t = swap(out)
    return -product(product(t, g), t)


_INV = Primitive("inv", _inv_forward, (_inv_rule,), (OUT,))


def inv(A: Any) -> Any:
    """The inverse of square matrices.

    Args:
        A: f[..., n, n] or complex.

    Raises:
        SingularError: A matrix has none.
        ShapeError: Not square.
        DtypeError: Half types and integers.
    """
    check_matrix("inv", A, square=True)
    return _INV(A)


def inv_ex(A: Any, *, check_errors: bool = False) -> InverseInfo:
    """The inverse and, for each matrix, 0 where it exists; NaN otherwise.

    Args:
        A: f[..., n, n].
        check_errors: Raise where there is none.
    """
    check_matrix("inv_ex", A, square=True)
    xp = backend.namespace(A._array)
    if check_errors:
        return InverseInfo(inv(A), wrap(xp.zeros(A._array.shape[:-2], np.int32)))
    lost = xp.linalg.det(A._array) == 0
    safe = el.where(wrap(lost[..., None, None]), eye_like(A), A)
    out = el.where(wrap(lost[..., None, None]), math.nan, _INV(safe))
    return InverseInfo(out, wrap(lost.astype(np.int32)))


def _solve_forward(a: Any, b: Any) -> Any:
    return gufunc("solve", backend.namespace(a).linalg.solve, a, b)


def _solve_left(g: Any, a: Any, out: Any) -> Any:
    return -product(SOLVE(swap(a), g), swap(out))


SOLVE = Primitive(
    "solve",
    _solve_forward,
    (_solve_left, lambda g, a, out: SOLVE(swap(a), g)),
    (0, OUT),
)


def solved(a: Any, b: Any) -> Any:
    """`a⁻¹ b` for matrices whose batch axes are broadcast first."""
    batch = shape.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return SOLVE(
        shape.broadcast_to(a, batch + tuple(a.shape[-2:])),
        shape.broadcast_to(b, batch + tuple(b.shape[-2:])),
    )


def _is_vector(a: Any, b: Any) -> bool:
    """True if `b` is a batch of right sides with one column each, without the axis for it."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """`X` with `A X = B`, or `X A = B` for `left=False`.

    Args:
        A: f[..., n, n].
        B: f[..., n, k] or f[..., n].

    Raises:
        SingularError: A matrix has no inverse.
        ShapeError: The sizes do not fit.
    """
    check_matrix("solve", A, square=True)
    vector = _is_vector(A, B)
    if vector:
        B = shape.unsqueeze(B, -1)
    check_matrix("solve", A, B)
    if not left:
        return shape.mT(solve(shape.mT(A), shape.mT(B)))
    _check_rows("solve", A, B)
    X = solved(A, B)
    return shape.squeeze(X, -1) if vector else X


def _check_rows(name: str, A: Any, B: Any) -> None:
    if A.shape[-2] != B.shape[-2]:
        raise ShapeError(
            f"{name}: the matrices and the right sides must have as many rows. "
            f"Got {describe(A)} and {describe(B)}."
        )


def solve_triangular(
    A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """`X` with `A X = B` for triangular `A`; the other triangle is not looked at.

    Args:
        A: f[..., n, n].
        B: f[..., n, k].
        upper: `A` is upper triangular.
        left: False for `X A = B`.
        unitriangular: The diagonal counts as ones.
    """
    check_matrix("solve_triangular", A, square=True)
    check_matrix("solve_triangular", A, B)
    if not left:
        options: Any = {"upper": not upper, "unitriangular": unitriangular}
        return shape.mT(solve_triangular(shape.mT(A), shape.mT(B), **options))
    _check_rows("solve_triangular", A, B)
    if unitriangular:
        A = (triu_of(A, 1) if upper else tril_of(A, -1)) + eye_like(A)
    return solved(triu_of(A) if upper else tril_of(A), B)


def triangular_solve(
    input: Any,
    A: Any,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> Any:
    """`(X, A)` with `A X = input`, or `Aᵀ X = input`, for triangular `A`."""
    matrix = shape.mT(A) if transpose else A
    up = upper != transpose
    return (solve_triangular(matrix, input, upper=up, unitriangular=unitriangular), A)


def cholesky_solve(B: Any, L: Any, upper: bool = False) -> Any:
    """`X` with `L Lᴴ X = B` (`Lᴴ L X = B` for upper factors)."""
    check_matrix("cholesky_solve", L, B)
    factor = mH(triu_of(L)) if upper else tril_of(L)
    return solved(mH(factor), solved(factor, B))


def cholesky_inverse(L: Any, upper: bool = False) -> Any:
    """The inverse of `L Lᴴ` (`Lᴴ L` for upper factors)."""
    check_matrix("cholesky_inverse", L, square=True)
    factor = mH(triu_of(L)) if upper else tril_of(L)
    inverse = _INV(factor)
    return product(mH(inverse), inverse)


# ---- determinants --------------------------------------------------------------------------------


def _det_forward(a: Any) -> Any:
    return backend.namespace(a).linalg.det(a)


def _column(x: Any) -> Any:
    """f[...] as f[..., 1, 1]."""
    return x[..., None, None]


def _det_rule(g: Any, a: Any, out: Any) -> Any:
    if type(a) is np.ndarray and not np.all(out):
        return _column(g) * _cofactors(a)
    return _column(g * out) * swap(_inverse(a))


def _inverse(a: Any) -> Any:
    return _INV(a)


def _cofactors(a: np.ndarray) -> np.ndarray:
    """det(A) A⁻ᵀ from the singular values, also where A has no inverse."""
    u, s, vh = np.linalg.svd(a)
    n = s.shape[-1]
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)
    sign = np.linalg.det(u) * np.linalg.det(vh)
    adjugate = (vh.conj().swapaxes(-1, -2) * others[..., None, :]) @ u.conj().swapaxes(-1, -2)
    result: np.ndarray = (sign[..., None, None] * adjugate).swapaxes(-1, -2).astype(a.dtype)
    return result


_DET = Primitive("det", _det_forward, (_det_rule,), (0, OUT))
_LOG_DET = Primitive(
    "logabsdet",
    lambda a: backend.namespace(a).linalg.slogdet(a)[1],
    (lambda g, a: _column(g) * swap(_inverse(a)),),
    (0,),
)


def _sign_rule(g: Any, a: Any, out: Any) -> Any:
    return _column(imag(g * out + 0j) * 1j) * swap(_inverse(a))


_SIGN = Primitive(
    "sign_of_det", lambda a: backend.namespace(a).linalg.slogdet(a)[0], (_sign_rule,), (0, OUT)
)


def det(A: Any) -> Any:
    """The determinants of square matrices, f[..., n, n] to f[...]."""
    check_matrix("det", A, square=True)
    return _DET(A)


def slogdet(A: Any) -> SignAndLog:
    """The sign (or phase) of the determinant and the logarithm of its absolute value."""
    check_matrix("slogdet", A, square=True)
    with np.errstate(all="ignore"):
        sign, log = backend.namespace(A._array).linalg.slogdet(A._array)
    shown = finish_one(_SIGN, sign, A) if is_complex(A) else wrap(sign)
    return SignAndLog(shown, finish_one(_LOG_DET, log, A))


def logdet(input: Any) -> Any:
    """The logarithm of the determinant; NaN where a real one is negative."""
    sign, log = slogdet(input)
    if sign.is_complex():
        return log + el.log(sign)
    return el.where(sign < 0, math.nan, log)


# ---- least squares -------------------------------------------------------------------------------


def cut_off(s: Any, size: tuple[int, int], atol: Any, rtol: Any) -> Any:
    """The threshold below which singular values count as 0, f[..., 1]."""
    a = raw(s)
    xp = backend.namespace(a)
    if rtol is None:
        none_given = atol is None
        rtol = max(size) * float(np.finfo(a.dtype).eps)
        rtol = rtol if none_given else xp.where(xp.asarray(raw(atol)) > 0, 0.0, rtol)
    atol = 0.0 if atol is None else atol
    largest = a.max(-1, keepdims=True) if a.shape[-1] else a.sum(-1, keepdims=True)
    bounds = [raw(b)[..., None] if getattr(raw(b), "ndim", 0) else raw(b) for b in (atol, rtol)]
    return xp.maximum(bounds[0], bounds[1] * largest)


def _pinv_forward(a: Any, *, atol: Any, rtol: Any, hermitian: bool) -> Any:
    xp = backend.namespace(a)
    if not a.size:
        return xp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        w, u = gufunc("pinv", xp.linalg.eigh, a)
        s, vh = xp.abs(w), (u * xp.sign(w)[..., None, :]).conj().swapaxes(-1, -2)
    else:
        u, s, vh = gufunc("pinv", xp.linalg.svd, a, full_matrices=False)
    keep = s > cut_off(s, a.shape[-2:], atol, rtol)
    inverse = xp.where(keep, 1 / xp.where(keep, s, 1), 0).astype(s.dtype)
    return xp.matmul(vh.conj().swapaxes(-1, -2) * inverse[..., None, :], u.conj().swapaxes(-1, -2))


def _pinv_rule(g: Any, a: Any, p: Any, **options: Any) -> Any:
    """With `P = A⁺`: `-Pᵀ g Pᵀ + (I - A P)ᵀ… `, written for what flows (see `engine.py`)."""
    g = conj(g)
    ph = mH(p)
    found = -product(product(ph, g), ph)
    gh = mH(g)
    pp = product(p, ph)
    found = found + product(gh, pp) - product(a, product(p, product(gh, pp)))
    pp = product(ph, p)
    found = found + product(pp, gh) - product(product(pp, product(gh, p)), a)
    return conj(found)


_PINV = Primitive("pinv", _pinv_forward, (_pinv_rule,), (0, OUT))


def pinv(A: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """The Moore-Penrose inverse, f[..., m, n] to f[..., n, m].

    Args:
        A: f[..., m, n].
        atol, rtol: Singular values up to `max(atol, rtol * largest)` count as 0.
        hermitian: The matrices are Hermitian; only their lower triangle is read.
    """
    check_matrix("pinv", A, square=hermitian)
    return _PINV(A, atol=raw(atol), rtol=raw(rtol), hermitian=hermitian)


def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """`pinv` with a relative bound."""
    return pinv(input, rtol=rcond)


def lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """`X` that makes `‖A X - B‖` smallest, and among those `‖X‖`.

    Args:
        A: f[..., m, n].
        B: f[..., m, k] or f[..., m].
        rcond: Singular values up to `rcond * largest` count as 0.
        driver: Taken for PyTorch's sake; `"gelsd"` and `"gelss"` also give the singular values.

    Returns:
        `solution, residuals, rank, singular_values`.
    """
    check_matrix("lstsq", A)
    vector = _is_vector(A, B)
    if vector:
        B = shape.unsqueeze(B, -1)
    check_matrix("lstsq", A, B)
    _check_rows("lstsq", A, B)
    m, n = A.shape[-2:]
    X = product(pinv(A, rtol=rcond), B)
    a = A._array
    xp = backend.namespace(a)
    values = xp.linalg.svd(a, compute_uv=False) if a.size else xp.zeros((0,), real_of(a.dtype))
    rank = (values > cut_off(values, (m, n), None, rcond)).sum(-1) if a.size else values.sum(-1)
    residuals = A.new_zeros(0, dtype=A.dtype).abs()
    if m > n and a.size and bool((rank == n).all()):
        residuals = reduction.sum(el.square(el.abs(product(A, X) - B)), -2)
    with_values = driver in ("gelsd", "gelss")
    shown = wrap(values if with_values else values.reshape(-1)[:0])
    return LeastSquares(
        shape.squeeze(X, -1) if vector else X, residuals, wrap(xp.asarray(rank)), shown
    )


def tensorinv(A: Any, ind: int = 2) -> Any:
    """The inverse of a tensor seen as a matrix of its first `ind` axes by the others."""
    front, back = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if math.prod(front) != math.prod(back) or ind <= 0:
        raise ShapeError(
            f"tensorinv: the sizes of the first {ind} axes must multiply to those of the others. "
            f"Got {describe(A)}. Choose another ind."
        )
    flat = shape.reshape(A, (math.prod(front), -1) if back else (1, 1))
    return shape.reshape(inv(flat), back + front)


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """`X` with `tensordot(A, X, X.ndim) = B`; the axes `dims` of `A` go to the end first."""
    if dims is not None:
        A = shape.movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    rest = tuple(A.shape[B.ndim :])
    n = math.prod(rest)
    if n * n != A.numel() or n != B.numel():
        raise ShapeError(
            f"tensorsolve: the axes of A must multiply to those of B and of the result alike. "
            f"Got {describe(A)} and {describe(B)}."
        )
    return shape.reshape(solve(shape.reshape(A, (n, n)), shape.reshape(B, (n,))), rest)


inverse = inv
