"""Complex matrices, named results, empty batches and errors of linear algebra, against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")


def _eye(m: Any, n: int) -> Any:
    return m.eye(n, dtype=m.complex128)


def _regular(m: Any, a: Any) -> Any:
    return a + 4 * _eye(m, a.shape[-1])


def _hermitian(m: Any, a: Any) -> Any:
    spread = m.diag(m.tensor([3.0 * (i + 1) for i in range(a.shape[-1])])).to(m.complex128)
    return (a + a.mH) * 0.3 + spread


def _positive(m: Any, a: Any) -> Any:
    return a @ a.mH + 2 * _eye(m, a.shape[-2])


def _apart(m: Any, a: Any) -> Any:
    n = min(a.shape[-2:])
    spread = m.diag(m.tensor([3.0 * (i + 1) for i in range(n)])).to(m.complex128)
    rows = m.zeros(a.shape[-2] - n, n, dtype=m.complex128)
    columns = m.zeros(a.shape[-2], a.shape[-1] - n, dtype=m.complex128)
    return a * 0.4 + m.cat([m.cat([spread, rows]), columns], 1)


def _svd(m: Any, a: Any) -> Any:
    u, s, vh = m.linalg.svd(_apart(m, a), full_matrices=False)
    return (u * (s * 0.3).sin()[..., None, :]) @ vh


def _eigh(m: Any, a: Any) -> Any:
    w, v = m.linalg.eigh(_hermitian(m, a))
    return (v * (w * 0.3).cos()[..., None, :]) @ v.mH


def _eig(m: Any, a: Any) -> Any:
    w, v = m.linalg.eig(_hermitian(m, a) + a * 0.1)
    return (v * (w * 0.3).exp()[..., None, :]) @ m.linalg.inv(v)


def _qr(m: Any, a: Any) -> Any:
    q, r = m.linalg.qr(_apart(m, a))
    return q.abs().exp().sum() * (r.abs() * 0.3).cos().sum()


S, T, W = (3, 3), (4, 3), (2, 4)
CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "inv": (lambda m, a: m.linalg.inv(_regular(m, a)), (S,)),
    "det": (lambda m, a: m.linalg.det(a), (S,)),
    "slogdet": (lambda m, a: m.linalg.slogdet(a)[1], (S,)),
    "slogdet sign": (lambda m, a: m.linalg.slogdet(a)[0], (S,)),
    "logdet": (lambda m, a: m.logdet(_regular(m, a)), (S,)),
    "solve": (lambda m, a, b: m.linalg.solve(_regular(m, a), b), ((2, 3, 3), (2, 3, 2))),
    "solve left": (lambda m, a, b: m.linalg.solve(_regular(m, a), b, left=False), (S, (2, 3))),
    "solve_triangular": (
        lambda m, a, b: m.linalg.solve_triangular(_regular(m, a), b, upper=True),
        (S, (3, 2)),
    ),
    "cholesky": (lambda m, a: m.linalg.cholesky(_positive(m, a)), (S,)),
    "cholesky upper": (lambda m, a: m.linalg.cholesky(_positive(m, a), upper=True), (S,)),
    "cholesky_solve": (
        lambda m, b, a: m.cholesky_solve(b, m.linalg.cholesky(_positive(m, a))),
        ((3, 2), S),
    ),
    "cholesky_inverse": (lambda m, a: m.cholesky_inverse(m.linalg.cholesky(_positive(m, a))), (S,)),
    "qr": (_qr, (T,)),
    "qr wide": (_qr, (W,)),
    "svd": (_svd, (T,)),
    "svd wide": (_svd, (W,)),
    "svdvals": (lambda m, a: m.linalg.svdvals(_apart(m, a)), (T,)),
    "eigh": (_eigh, (S,)),
    "eigvalsh": (lambda m, a: m.linalg.eigvalsh(_hermitian(m, a)), (S,)),
    "eig": (_eig, (S,)),
    "eigvals": (lambda m, a: m.linalg.eigvals(_hermitian(m, a) + a * 0.1).exp().sum(), (S,)),
    "pinv": (lambda m, a: m.linalg.pinv(_apart(m, a)), (T,)),
    "pinv hermitian": (lambda m, a: m.linalg.pinv(_hermitian(m, a), hermitian=True), (S,)),
    "lstsq": (lambda m, a, b: m.linalg.lstsq(_apart(m, a), b)[0], (T, (4, 2))),
    "lu": (lambda m, a: m.cat(m.linalg.lu(_regular(m, a))[1:], -1), (S,)),
    "matrix_exp": (lambda m, a: m.linalg.matrix_exp(a), (S,)),
    "matrix_power": (lambda m, a: m.linalg.matrix_power(a, 3), (S,)),
    "matrix_norm": (lambda m, a: m.linalg.matrix_norm(_apart(m, a), "nuc"), (T,)),
    "vector_norm": (lambda m, a: m.linalg.vector_norm(a, 3, 1), (T,)),
    "einsum": (lambda m, a, b: m.einsum("ij,kj->ik", a, b.conj()), (T, (2, 3))),
    "vdot": (lambda m, a, b: m.vdot(a, b), ((3,), (3,))),
    "kron": (lambda m, a, b: m.kron(a, b), ((2, 2), (1, 3))),
    "cov": (lambda m, a: m.cov(a), (W,)),
    "cross": (lambda m, a, b: m.linalg.cross(a, b), ((2, 3), (2, 3))),
    "addr": (lambda m, a, b, c: m.addr(a, b, c, beta=2), ((2, 3), (2,), (3,))),
}


@pytest.mark.parametrize("name", CASES)
def test_complex_matrices(name: str) -> None:
    call, shapes = CASES[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal(s) + 1j * rng.standard_normal(s) for s in shapes]
    ours = [mt.tensor(a).requires_grad_() for a in arrays]
    theirs = [torch.tensor(a).requires_grad_() for a in arrays]
    y, t = call(mt, *ours), call(torch, *theirs)
    assert str(y.dtype).split(".")[1] == str(t.dtype).split(".")[1]
    close = {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(y.detach().numpy(), t.detach().resolve_conj().numpy(), **close)
    seed = rng.standard_normal(y.shape) + (
        1j * rng.standard_normal(y.shape) if y.is_complex() else 0
    )
    found = mt.autograd.grad(y, ours, mt.tensor(seed))
    expected = torch.autograd.grad(t, theirs, torch.tensor(seed))
    for g, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(g.numpy(), e.resolve_conj().numpy(), **close)
    assert gradcheck(lambda *xs: call(mt, *xs), ours)
    assert gradgradcheck(lambda *xs: call(mt, *xs), ours, fast_mode=True)


RESULTS = [
    ("qr", "Q R"),
    ("svd", "U S Vh"),
    ("eigh", "eigenvalues eigenvectors"),
    ("eig", "eigenvalues eigenvectors"),
    ("slogdet", "sign logabsdet"),
    ("inv_ex", "inverse info"),
    ("cholesky_ex", "L info"),
    ("lu", "P L U"),
    ("lu_factor", "LU pivots"),
]


@pytest.mark.parametrize(("name", "fields"), RESULTS)
def test_results_have_names(name: str, fields: str) -> None:
    x = np.eye(2) * 2 + 0.1
    ours, theirs = (getattr(m.linalg, name)(m.tensor(x)) for m in (mt, torch))
    for field, part in zip(fields.split(), ours, strict=True):
        assert getattr(ours, field) is part
        expected = getattr(theirs, field)
        assert str(part.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        np.testing.assert_allclose(np.abs(part.numpy()), np.abs(expected.numpy()), rtol=1e-9)


def test_lstsq_has_names() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((5, 3)), rng.standard_normal((5, 2))
    ours, theirs = (m.linalg.lstsq(m.tensor(a), m.tensor(b), driver="gelsd") for m in (mt, torch))
    for field in ("solution", "residuals", "rank", "singular_values"):
        np.testing.assert_allclose(getattr(ours, field).numpy(), getattr(theirs, field).numpy())
    assert mt.linalg.lstsq(mt.tensor(a), mt.tensor(b)).singular_values.numel() == 0


EMPTY = [
    ("inv", (0, 3, 3)),
    ("inv", (0, 0)),
    ("det", (2, 0, 0)),
    ("slogdet", (0, 0)),
    ("cholesky", (0, 2, 2)),
    ("qr", (0, 3, 2)),
    ("qr", (3, 0)),
    ("svd", (0, 3)),
    ("svd", (0, 2, 3)),
    ("svdvals", (2, 0, 3)),
    ("eigh", (0, 2, 2)),
    ("eig", (0, 2, 2)),
    ("pinv", (0, 3)),
    ("matrix_exp", (0, 2, 2)),
    ("matrix_rank", (2, 0, 3)),
    ("vector_norm", (0,)),
    ("matrix_norm", (2, 0, 3)),
]


@pytest.mark.parametrize(("name", "shape"), EMPTY)
def test_empty(name: str, shape: tuple[int, ...]) -> None:
    ours, theirs = (getattr(m.linalg, name)(m.zeros(*shape)) for m in (mt, torch))
    for got, want in zip(_listed(ours), _listed(theirs), strict=True):
        assert tuple(got.shape) == tuple(want.shape)
        assert str(got.dtype).split(".")[1] == str(want.dtype).split(".")[1]
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def _listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def _m(*shape: int, dtype: Any = None) -> Any:
    return mt.ones(*shape, dtype=dtype)


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: mt.einsum(), "einsum: an equation and operands are needed"),
    (lambda: mt.einsum("ij,j", _m(2, 3)), "must name as many operands as are given"),
    (lambda: mt.einsum("i1", _m(2, 3)), "labels are the letters"),
    (lambda: mt.einsum("...i...", _m(2, 3)), "may stand once for each operand"),
    (lambda: mt.einsum("ij->k", _m(2, 3)), "the output has the label 'k', which no operand has"),
    (lambda: mt.einsum("ij->ii", _m(2, 3)), "a label may stand once in the output"),
    (lambda: mt.einsum("ijk", _m(2, 3)), "each axis needs a label"),
    (lambda: mt.einsum("i", _m(2, 3)), "each axis needs a label"),
    (lambda: mt.einsum("ii", _m(2, 3)), "a repeated label must have one length"),
    (lambda: mt.einsum("ij,jk", _m(2, 3), _m(4, 2)), "each label must have one length. Got 'j'"),
    (lambda: mt.einsum("i,i", _m(2), _m(2).double()), "einsum: operands must have one dtype"),
    (lambda: mt.einsum("i,i", _m(2), 3), "einsum: operands must be tensors"),
    (lambda: mt.einsum(_m(2), [77]), "labels in lists are 0 to 51"),
    (lambda: mt.tensordot(_m(2, 3), _m(2), 3), "tensordot: dims must be from 0 to 1"),
    (lambda: mt.tensordot(_m(2, 3), _m(4), 1), "the axes that are summed must be as long in both"),
    (lambda: mt.inner(_m(2), _m(3)), "inner: the last axes must be as long"),
    (lambda: mt.linalg.multi_dot([_m(2, 3)]), "multi_dot: at least two operands"),
    (lambda: mt.linalg.multi_dot([_m(2), _m(2), _m(2)]), "multi_dot: operands must be matrices"),
    (lambda: mt.cross(_m(2), _m(2)), "cross: an axis must have length 3"),
    (lambda: mt.linalg.cross(_m(2), _m(2)), "cross: the axis -1 must have length 3"),
    (lambda: mt.linalg.cross(_m(3), _m(2, 3)), "cross: both operands must have as many axes"),
    (lambda: mt.trace(_m(2)), "trace: a matrix is needed"),
    (lambda: mt.linalg.vander(_m(2), N=-1), "vander: N must not be negative"),
    (lambda: mt.cov(_m(2, 2, 2)), "cov: at most 2 axes"),
    (lambda: mt.cov(_m(2, dtype=mt.bool_)), "cov: bool has no covariance"),
    (lambda: mt.cov(_m(2), fweights=_m(2)), "cov: fweights must be integers"),
    (lambda: mt.cdist(_m(2, 3), _m(2, 4)), "matrices with rows of one length"),
    (lambda: mt.cdist(_m(2, 3), _m(2, 3), p=-1), "cdist: p must not be negative"),
    (lambda: mt.cdist(_m(2, 3).long(), _m(2, 3).long()), "cdist: the operands must be floating"),
    (lambda: mt.linalg.inv(_m(3)), "inv: matrices need at least 2 axes"),
    (lambda: mt.linalg.inv(_m(3, 2)), "inv: the matrices must be square. Got f32"),
    (lambda: mt.linalg.inv(_m(2, 2).half()), "must be float32, float64 or complex"),
    (lambda: mt.linalg.inv(_m(2, 2).long()), "must be float32, float64 or complex"),
    (lambda: mt.linalg.inv(_m(2, 2)), "inv: Singular matrix for f32"),
    (lambda: mt.linalg.solve(_m(2, 2), _m(2, 1)), "solve: Singular matrix"),
    (lambda: mt.linalg.solve(_m(2, 2), _m(3, 1)), "must have as many rows"),
    (lambda: mt.linalg.solve(_m(2, 2), _m(2, 1).double()), "solve: operands must have one dtype"),
    (lambda: mt.linalg.cholesky(-mt.eye(2)), "cholesky: Matrix is not positive definite"),
    (lambda: mt.linalg.qr(_m(2, 2), "full"), "qr: mode must be"),
    (lambda: mt.linalg.eigh(_m(2, 2), "X"), "eigh: UPLO must be"),
    (lambda: mt.linalg.lu(_m(2, 2), pivot=False), "lu: only pivot=True"),
    (lambda: mt.linalg.lu_solve(_m(2, 2), _m(2).int(), _m(3, 1)), "lu_solve: the sizes"),
    (lambda: mt.linalg.tensorinv(_m(2, 3, 4)), "tensorinv: the sizes of the first 2 axes"),
    (lambda: mt.linalg.tensorsolve(_m(2, 3), _m(2)), "tensorsolve: the axes of A"),
    (lambda: mt.linalg.matrix_power(_m(2, 3), 2), "matrix_power: the matrices must be square"),
    (lambda: mt.linalg.matrix_norm(_m(2)), "matrix_norm: two axes are needed"),
    (lambda: mt.linalg.matrix_norm(_m(2, 2), 3), "matrix_norm: ord must be"),
    (lambda: mt.linalg.norm(_m(2, 2, 2), 2), "norm: with an order and no dim"),
    (lambda: mt.linalg.norm(_m(2, 2), "nuc", 1), "is one of matrices and needs two axes"),
    (lambda: mt.linalg.vector_norm(_m(0), math.inf), "vector_norm: the order inf needs an element"),
]


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_messages(call: Callable[[], Any], text: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=text):
        call()


def test_singular_matrices_have_an_error_of_their_own() -> None:
    with pytest.raises(mt.linalg.LinAlgError):
        mt.linalg.inv(mt.zeros(2, 2))
    found = mt.linalg.inv_ex(mt.stack([mt.zeros(2, 2), mt.eye(2)]))
    assert (found.info != 0).tolist() == [True, False]
    assert found.inverse[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_backward_of_a_complete_qr_says_what_to_do() -> None:
    x = mt.randn(3, 2).requires_grad_()
    with pytest.raises(ValueError, match="qr has gradients for mode 'reduced'"):
        mt.linalg.qr(x, "complete").Q.sum().backward()


def test_the_gradient_of_det_at_a_singular_matrix() -> None:
    x = mt.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=mt.float64, requires_grad=True)
    mt.linalg.det(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [[4.0, -2.0], [-2.0, 1.0]], atol=1e-12)


def test_saved_parts_are_protected() -> None:
    x = mt.randn(3, 3).requires_grad_()
    values, vectors = mt.linalg.eigh(x @ x.T)
    vectors.detach().mul_(2)
    with pytest.raises(RuntimeError, match="changed it in place"):
        values.sum().backward()
