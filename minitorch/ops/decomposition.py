"""Decompositions of matrices: Cholesky, QR, singular values, eigenvalues.

Gradient rules as in a textbook, for gradients `∂L/∂x + i ∂L/∂y`. Signs and phases of vectors are
not determined, so that only functions that do not depend on them have a meaningful gradient.

Source: Giles, "An extended collection of matrix derivative results", 2008; Boeddeker and others,
"On the computation of complex-valued gradients", 2017; Walter and Lehmann, "Algorithmic
differentiation of linear algebra functions", 2010.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import backend
from ..errors import ArgumentError, describe
from . import joining
from .complex_numbers import complex_of, conj, imag, is_complex, real, real_of
from .matrix_checks import (
    check_matrix,
    diagonal_of,
    eye_like,
    gufunc,
    mH,
    product,
    tril_of,
    triu_of,
)
from .primitive import OUT, Primitive, cast, raw, wrap
from .several import Several
from .solving import SOLVE


class QR(NamedTuple):
    """What `qr` returns."""

    Q: Any
    R: Any


class SVD(NamedTuple):
    """What `linalg.svd` returns."""

    U: Any
    S: Any
    Vh: Any


class Eigen(NamedTuple):
    """What `eigh` and `eig` return."""

    eigenvalues: Any
    eigenvectors: Any


class Factor(NamedTuple):
    """What `cholesky_ex` returns."""

    L: Any
    info: Any


# ---- Cholesky ------------------------------------------------------------------------------------


def _cholesky_forward(a: Any) -> Any:
    return gufunc("cholesky", backend.namespace(a).linalg.cholesky, a)


def _halved(x: Any) -> Any:
    """The lower triangle with half of the diagonal."""
    return tril_of(x) - eye_like(x) * x * 0.5


def _cholesky_rule(g: Any, out: Any) -> Any:
    lower = mH(out)
    inner = _halved(product(lower, tril_of(conj(g))))
    half = SOLVE(lower, inner)
    found = mH(SOLVE(lower, mH(half)))
    return conj((found + mH(found)) * 0.5)


_CHOLESKY = Primitive("cholesky", _cholesky_forward, (_cholesky_rule,), (OUT,))


def cholesky(A: Any, upper: bool = False) -> Any:
    """The lower triangular `L` with `A = L Lᴴ`; for `upper`, `Lᴴ`.

    Args:
        A: f[..., n, n], Hermitian and positive definite; only the lower triangle is read.

    Raises:
        SingularError: A matrix is not positive definite.
    """
    check_matrix("cholesky", A, square=True)
    source = mH(A) if upper else A
    L = _CHOLESKY(source)
    return mH(L) if upper else L


def cholesky_ex(A: Any, *, upper: bool = False, check_errors: bool = False) -> Factor:
    """`cholesky`, and 0 for each matrix that has one; raises for the others.

    Args:
        A: f[..., n, n], as for `cholesky`.
        upper: As for `cholesky`.
        check_errors: Has no effect: errors are raised in any case.
    """
    L = cholesky(A, upper)
    return Factor(L, L.new_zeros(L.shape[:-2], dtype=np.int32))


# ---- QR ------------------------------------------------------------------------------------------


def _qr_forward(a: Any, *, mode: str) -> tuple[Any, ...]:
    xp = backend.namespace(a)
    if not a.size:
        m, n = a.shape[-2:]
        k = m if mode == "complete" else min(m, n)
        q = xp.zeros((*a.shape[:-2], m, k), a.dtype)
        q[...] = xp.eye(m, k, dtype=a.dtype)
        return q, xp.zeros((*a.shape[:-2], k, n), a.dtype)
    return tuple(xp.linalg.qr(a, mode=mode))


def _qr_rule(grads: Any, outputs: Any, *, mode: str) -> Any:
    (gq, gr), (q, r) = grads, outputs
    if raw(q).shape[-1] != raw(r).shape[-1]:
        raise ArgumentError(
            f"backward: qr has gradients for mode 'reduced', or where A has not more rows than "
            f"columns. Got mode {mode!r} and Q {describe(q)}. Use mode 'reduced'."
        )
    inner: Any = 0
    if gr is not None:
        inner = inner + product(gr, mH(r))
    if gq is not None:
        inner = inner - product(mH(q), gq)
    upper = triu_of(inner)
    # What is Hermitian and has `upper` as its upper triangle.
    whole = upper + mH(upper) - _real_diagonal(upper)
    found = product(q, whole)
    if gq is not None:
        found = found + gq
    return mH(SOLVE(r, mH(found)))


def _real_diagonal(x: Any) -> Any:
    return eye_like(x) * (real(x) if is_complex(x) else x)


_QR = Several("qr", _qr_forward, _qr_rule)


def qr(A: Any, mode: str = "reduced") -> QR:
    """`A = Q R` with orthonormal columns of `Q` and upper triangular `R`.

    Args:
        A: f[..., m, n].
        mode: `"reduced"`, `"complete"` or `"r"` (then `Q` is empty).

    Raises:
        ArgumentError: Another mode.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode must be 'reduced', 'complete' or 'r'. Got {mode!r}.")
    check_matrix("qr", A)
    m, n = A.shape[-2:]
    kind = "complete" if mode == "complete" else "reduced"
    if m < n:
        Q, R = _QR(A[..., :m], mode=kind)
        R = joining.cat([R, product(mH(Q), A[..., m:])], -1)
    else:
        Q, R = _QR(A, mode=kind)
    return QR(A.new_zeros(0, dtype=A.dtype) if mode == "r" else Q, R)


# ---- singular values -----------------------------------------------------------------------------


def _svd_forward(a: Any, *, full: bool) -> tuple[Any, ...]:
    xp = backend.namespace(a)
    if a.size:
        return tuple(gufunc("svd", xp.linalg.svd, a, full_matrices=full))
    (m, n), batch = a.shape[-2:], a.shape[:-2]
    k = min(m, n)
    u = xp.zeros((*batch, m, m if full else k), a.dtype)
    vh = xp.zeros((*batch, n if full else k, n), a.dtype)
    for part in (u, vh):
        part[...] = xp.eye(*part.shape[-2:], dtype=a.dtype)
    return u, xp.zeros((*batch, k), real_of(a.dtype)), vh


def _skew(x: Any) -> Any:
    return x - mH(x)


def _svd_rule(grads: Any, outputs: Any, *, full: bool) -> Any:
    (gu, gs, gvh), (u, s, vh) = grads, outputs
    k = raw(s).shape[-1]
    u, vh = u[..., :, :k], vh[..., :k, :]
    row, column = s[..., None, :], s[..., :, None]
    core: Any = 0 if gs is None else _embedded(gs, u)
    found: Any = 0
    gap = row * row - column * column + eye_like(_squares(s))
    if gu is not None:
        gu = gu[..., :, :k]
        inner = product(mH(u), gu)
        core = core + _skew(inner) / gap * row
        if is_complex(u):
            phase = imag(diagonal_of(inner)) * 1j / s
            core = core + _embedded(phase, u)
        found = found + product((gu - product(u, inner)) / row, vh)
    if gvh is not None:
        gvh = gvh[..., :k, :]
        gv, v = mH(gvh), mH(vh)
        inner = product(vh, gv)
        core = core + column * (_skew(inner) / gap)
        found = found + product(u, mH((gv - product(v, inner)) / row))
    return product(product(u, core), vh) + found


def _squares(s: Any) -> Any:
    """A square of numbers like `s` in its last two axes."""
    return s[..., None, :] * s[..., :, None]


def _embedded(values: Any, like: Any) -> Any:
    """Vectors on the diagonals of matrices of the dtype of `like`."""
    return cast(values[..., None, :] * eye_like(_squares(values)), raw(like).dtype)


_SVD = Several("svd", _svd_forward, _svd_rule)


def svd(A: Any, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """`A = U diag(S) Vh` with falling singular values `S`.

    Args:
        A: f[..., m, n].
        full_matrices: `U` and `Vh` are square; vectors without a singular value have no gradient.
        driver: Taken for PyTorch's sake.

    Raises:
        SingularError: The iteration did not converge, as for NaN.
    """
    check_matrix("svd", A)
    return SVD(*_SVD(A, full=full_matrices))


def svdvals(A: Any, *, driver: str | None = None) -> Any:
    """The singular values, falling, f[..., min(m, n)]; arguments as for `svd`."""
    check_matrix("svdvals", A)
    if A.requires_grad or not A._array.size:
        return _SVD(A, full=False)[1]
    return wrap(
        gufunc("svdvals", backend.namespace(A._array).linalg.svd, A._array, compute_uv=False)
    )


# ---- eigenvalues ---------------------------------------------------------------------------------


def _eigh_forward(a: Any, *, UPLO: str) -> tuple[Any, ...]:
    return tuple(gufunc("eigh", backend.namespace(a).linalg.eigh, a, UPLO=UPLO))


def _eigh_rule(grads: Any, outputs: Any, *, UPLO: str) -> Any:
    (gw, gv), (w, v) = grads, outputs
    core: Any = 0 if gw is None else _embedded(gw, v)
    if gv is not None:
        gap = w[..., None, :] - w[..., :, None]
        eye = eye_like(gap)
        core = core + product(mH(v), gv) * (1 - eye) / (gap + eye)
    return product(product(v, core), mH(v))


_EIGH = Several("eigh", _eigh_forward, _eigh_rule)


def eigh(A: Any, UPLO: str = "L") -> Eigen:
    """Eigenvalues (rising) and eigenvectors (columns) of Hermitian matrices.

    Args:
        A: f[..., n, n]; only the triangle `UPLO` is read.
        UPLO: `"L"` or `"U"`.
    """
    if UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"eigh: UPLO must be 'L' or 'U'. Got {UPLO!r}.")
    check_matrix("eigh", A, square=True)
    return Eigen(*_EIGH(A, UPLO=UPLO.upper()))


def eigvalsh(A: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, rising; arguments as for `eigh`."""
    if A.requires_grad:
        return eigh(A, UPLO).eigenvalues
    check_matrix("eigvalsh", A, square=True)
    return wrap(
        gufunc("eigvalsh", backend.namespace(A._array).linalg.eigvalsh, A._array, UPLO=UPLO)
    )


def _eig_forward(a: Any) -> tuple[Any, ...]:
    """On the host: CuPy has no such function."""
    where = backend.device_of(a)
    parts = gufunc("eig", np.linalg.eig, backend.to_host(a))
    target = complex_of(a.dtype)
    return tuple(backend.from_host(part.astype(target), where) for part in parts)


def _eig_rule(grads: Any, outputs: Any) -> Any:
    (gw, gv), (w, v) = grads, outputs
    core: Any = 0 if gw is None else _embedded(gw, v)
    vh = mH(v)
    if gv is not None:
        inner = product(vh, gv)
        along = real(diagonal_of(inner))
        inner = inner - product(vh, v) * along[..., None, :]
        gap = conj(w[..., None, :] - w[..., :, None])
        eye = eye_like(gap)
        core = core + inner * (1 - eye) / (gap + eye)
    return SOLVE(vh, product(core, vh))


_EIG = Several("eig", _eig_forward, _eig_rule)


def eig(A: Any) -> Eigen:
    """Eigenvalues and eigenvectors (columns of length 1) of square matrices, always complex.

    Args:
        A: f[..., n, n].
    """
    check_matrix("eig", A, square=True)
    return Eigen(*_EIG(A))


def eigvals(A: Any) -> Any:
    """The eigenvalues of square matrices, always complex."""
    check_matrix("eigvals", A, square=True)
    return _EIG(A)[0]
