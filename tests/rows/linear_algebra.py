"""Products over named axes, decompositions, equations, norms and distances.

Signs of singular vectors and the like are not determined: rows compare what does not depend
on them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from op_table import NO_GRAD, Row

HALF = {"float dtypes": "no decompositions of half types, as in PyTorch"}
SINGLE = {"float dtypes": "looser than the float32 of the same operation on GPUs"}
TORCH = {"parity": "torch has no gradient here"}
WAITS = {"waits": "the answer decides how to go on"}
SQUARE = (((3, 3),), ((2, 3, 3),), ((1, 1),), ((2, 0, 3, 3),))
TALL = (((4, 3),), ((2, 4, 3),), ((3, 3),))
ANY = (*TALL, ((3, 4),), ((2, 2, 4),))
SOLVED = (((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 2)), ((3, 3), (3,)), ((3, 3), (4, 3, 2)))


def _row(name: str, call: Callable[..., Any], shapes: Any, **options: Any) -> Row:
    options["exempt"] = HALF | options.pop("exempt", {})
    return Row(name, call, shapes, **options)


def _plain(name: str, call: Callable[..., Any], shapes: Any, **options: Any) -> Row:
    return Row(name, call, shapes, **options)


def _eye(m: Any, n: int, like: Any) -> Any:
    return m.tensor([[float(i == j) for j in range(n)] for i in range(n)], dtype=like.dtype)


def regular(m: Any, x: Any) -> Any:
    """Square matrices far from singular."""
    return x + 4 * _eye(m, x.shape[-1], x)


def positive(m: Any, x: Any) -> Any:
    """Symmetric and positive definite matrices."""
    return x @ x.mT + 2 * _eye(m, x.shape[-2], x)


def symmetric(m: Any, x: Any) -> Any:
    """Symmetric matrices with eigenvalues apart."""
    spread = [[3.0 * (i + 1) * (i == j) for j in range(x.shape[-1])] for i in range(x.shape[-1])]
    return (x + x.mT) * 0.3 + m.tensor(spread, dtype=x.dtype)


def apart(m: Any, x: Any) -> Any:
    """Matrices with singular values apart."""
    sizes = x.shape[-2:]
    spread = [[3.0 * (i + 1) * (i == j) for j in range(sizes[1])] for i in range(sizes[0])]
    return x * 0.4 + m.tensor(spread, dtype=x.dtype)


def _svd_product(m: Any, x: Any) -> Any:
    u, s, vh = m.linalg.svd(apart(m, x), full_matrices=False)
    return (u * s.sin()[..., None, :]) @ vh


def _eigh_function(m: Any, x: Any) -> Any:
    w, v = m.linalg.eigh(symmetric(m, x))
    return (v * (w * 0.3).cos()[..., None, :]) @ v.mT


def _eig_function(m: Any, x: Any) -> Any:
    w, v = m.linalg.eig(symmetric(m, x) + x * 0.1)
    return m.view_as_real((v * (w * 0.3).exp()[..., None, :]) @ m.linalg.inv(v))


def _qr_function(m: Any, x: Any) -> Any:
    q, r = m.linalg.qr(apart(m, x))
    return (q.abs().exp().sum((-1, -2)) + 1) * (r.abs() * 0.3).cos().sum((-1, -2))


def _old(name: str, m: Any, *args: Any, **options: Any) -> Any:
    """A function that PyTorch calls deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(m, name)(*args, **options)


EINSUM: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk->ik", ((3, 4), (4, 2))),
    ("bij,bjk->bik", ((2, 3, 4), (2, 4, 2))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 2))),
    ("i,j,k->kji", ((2,), (3,), (4,))),
    ("ii->i", ((3, 3),)),
    ("ii", ((3, 3),)),
    ("iij->j", ((3, 3, 2),)),
    ("ij->ji", ((3, 4),)),
    ("ij->", ((3, 4),)),
    ("ba", ((3, 4),)),
    ("...ij,...jk->...ik", ((2, 3, 4), (4, 2))),
    ("...i,...i->...", ((2, 1, 3), (4, 3))),
    ("i...->...", ((3, 4),)),
    ("bhqd,bhkd->bhqk", ((1, 2, 3, 4), (1, 2, 3, 4))),
    ("ij,ij->ij", ((3, 4), (3, 4))),
    ("ij,ij->ij", ((3, 1), (1, 4))),
    ("ab,bc,cd,de->ae", ((2, 3), (3, 0), (0, 2), (2, 2))),
    ("Ab,bA", ((2, 3), (3, 2))),
    ("ijk,k->", ((2, 3, 4), (4,))),
]

PRODUCTS = [
    *[
        _plain(
            f"einsum {text} {i}",
            lambda m, *xs, text=text: m.einsum(text, *xs),
            (shapes,),
            exempt={"strided": "another order of summation"},
        )
        for i, (text, shapes) in enumerate(EINSUM)
    ],
    _plain("einsum list", lambda m, a, b: m.einsum("ij,j", [a, b]), (((3, 4), (4,)),)),
    _plain(
        "einsum numbers",
        lambda m, a, b: m.einsum(a, [0, 1, ...], b, [1, 2], [2, 0, ...]),
        (((2, 3, 2), (3, 4)),),
    ),
    _plain("tensordot", lambda m, a, b: m.tensordot(a, b), (((2, 3, 4), (3, 4, 2)),)),
    _plain("tensordot 0", lambda m, a, b: m.tensordot(a, b, 0), (((2,), (3,)),)),
    _plain(
        "tensordot axes",
        lambda m, a, b: m.tensordot(a, b, dims=([0, 2], [1, 0])),
        (((2, 3, 4), (4, 2, 5)),),
    ),
    _plain("kron", lambda m, a, b: m.kron(a, b), (((2, 3), (2, 2)), ((2,), (2, 3)), ((), (3,)))),
    _plain("inner", lambda m, a, b: m.inner(a, b), (((2, 3), (4, 3)), ((3,), (3,)), ((), (3,)))),
    _plain("vdot", lambda m, a, b: m.vdot(a, b), (((3,), (3,)),)),
    _plain("vecdot", lambda m, a, b: m.linalg.vecdot(a, b), (((2, 3), (3,)),)),
    _plain("ger", lambda m, a, b: m.ger(a, b), (((3,), (4,)),)),
    _plain("addmv", lambda m, a, b, c: m.addmv(a, b, c, beta=2, alpha=3), (((3,), (3, 4), (4,)),)),
    _plain("addr", lambda m, a, b, c: m.addr(a, b, c, beta=0.5, alpha=2), (((3, 4), (3,), (4,)),)),
    _plain(
        "addbmm", lambda m, a, b, c: m.addbmm(a, b, c, alpha=2), (((3, 2), (2, 3, 4), (2, 4, 2)),)
    ),
    _plain(
        "chain_matmul",
        lambda m, a, b, c: _old("chain_matmul", m, a, b, c),
        (((2, 5), (5, 1), (1, 4)),),
    ),
    _plain(
        "multi_dot",
        lambda m, a, b, c: m.linalg.multi_dot([a, b, c]),
        (((2, 5), (5, 1), (1, 4)), ((5,), (5, 2), (2,))),
    ),
    _plain("cross", lambda m, a, b: m.linalg.cross(a, b), (((2, 3), (2, 3)), ((1, 3), (4, 3)))),
    _plain("cross dim", lambda m, a, b: m.linalg.cross(a, b, dim=0), (((3, 2), (3, 2)),)),
    _plain("trace", lambda m, x: m.trace(x), (((3, 4),), ((0, 3),))),
    _row("linalg.vander", lambda m, x: m.linalg.vander(x), (((2, 3),),), exempt=WAITS | TORCH),
    _row("cov", lambda m, x: m.cov(x), (((3, 5),), ((4,),))),
    _row("cov correction", lambda m, x: m.cov(x, correction=0), (((3, 5),),)),
    _row(
        "cov weights",
        lambda m, x, w: m.cov(x, fweights=m.tensor([1, 2, 1, 3, 1]), aweights=w.abs() + 0.5),
        (((3, 5), (5,)),),
    ),
    _row("corrcoef", lambda m, x: m.corrcoef(x), (((3, 5),), ((4,),))),
]

DISTANCES = [
    *[
        _plain(
            f"cdist {p}",
            lambda m, a, b, p=p: m.cdist(a, b, p=p),
            (((3, 4), (2, 4)), ((2, 3, 4), (2, 2, 4)), ((2, 1, 3, 4), (2, 2, 4))),
            exempt={} if p else {"second": "constant", "gradient": "0"},
        )
        for p in (0.0, 1.0, 1.5, 2.0, 3.0, float("inf"))
    ],
    _row(
        "cdist by product",
        lambda m, a, b: m.cdist(a, b, compute_mode="use_mm_for_euclid_dist"),
        (((3, 4), (2, 4)),),
    ),
]

SOLVING = [
    _row("inv", lambda m, x: m.linalg.inv(regular(m, x)), SQUARE),
    _row("inverse", lambda m, x: m.inverse(regular(m, x)), SQUARE[:1]),
    _row("inv_ex", lambda m, x: m.linalg.inv_ex(regular(m, x)).inverse, SQUARE[:3]),
    _row("det", lambda m, x: m.det(x), SQUARE),
    _row(
        "det singular",
        lambda m, x: m.linalg.det(x[:, :1] * x[:1] + x[:, 1:2] * x[1:2]),
        (((3, 3),),),
        exempt={"second": "not at a singular matrix", "parity": "0 with another rounding"},
    ),
    _row("slogdet", lambda m, x: m.slogdet(regular(m, x))[1], SQUARE),
    _row(
        "slogdet sign", lambda m, x: m.linalg.slogdet(x.detach()).sign, SQUARE[:2], exempt=NO_GRAD
    ),
    _row("logdet", lambda m, x: m.logdet(positive(m, x)), SQUARE[:2]),
    _row("solve", lambda m, a, b: m.linalg.solve(regular(m, a), b), SOLVED),
    _row(
        "solve left=False",
        lambda m, a, b: m.linalg.solve(regular(m, a), b, left=False),
        (((3, 3), (2, 3)),),
    ),
    *[
        _row(
            f"solve_triangular {up} {left} {unit}",
            lambda m, a, b, up=up, left=left, unit=unit: m.linalg.solve_triangular(
                regular(m, a), b, upper=up, left=left, unitriangular=unit
            ),
            (((3, 3), (3, 2) if left else (2, 3)),),
        )
        for up, left, unit in ((True, True, False), (False, True, True), (True, False, False))
    ],
    _row(
        "triangular_solve",
        lambda m, b, a: _old("triangular_solve", m, b, regular(m, a), transpose=True)[0],
        (((3, 2), (3, 3)),),
    ),
    _row(
        "cholesky_solve",
        lambda m, b, a: m.cholesky_solve(b, m.linalg.cholesky(positive(m, a))),
        (((3, 2), (3, 3)),),
    ),
    _row(
        "cholesky_solve upper",
        lambda m, b, a: m.cholesky_solve(b, regular(m, a).triu(), upper=True),
        (((3, 2), (3, 3)),),
    ),
    _row("cholesky_inverse", lambda m, a: m.cholesky_inverse(regular(m, a).tril()), SQUARE[:2]),
    _row("pinv", lambda m, x: m.linalg.pinv(apart(m, x)), ANY),
    _row("pinverse", lambda m, x: m.pinverse(apart(m, x)), TALL[:1]),
    _row(
        "pinv hermitian",
        lambda m, x: m.linalg.pinv(symmetric(m, x), hermitian=True),
        SQUARE[:2],
    ),
    _row(
        "lstsq",
        lambda m, a, b: m.linalg.lstsq(apart(m, a), b).solution,
        (((4, 3), (4, 2)), ((2, 3, 3), (2, 3, 2)), ((4, 3), (4,))),
        exempt=WAITS,
    ),
    _row(
        "tensorinv", lambda m, x: m.linalg.tensorinv(regular(m, x).reshape(2, 2, 4)), (((4, 4),),)
    ),
    _row(
        "tensorsolve",
        lambda m, a, b: m.linalg.tensorsolve(regular(m, a).reshape(2, 2, 4), b),
        (((4, 4), (2, 2)),),
    ),
    _row("lu", lambda m, x: m.cat(m.linalg.lu(regular(m, x))[1:], -1), SQUARE[:2]),
    _row("lu wide", lambda m, x: m.linalg.lu(x)[2], (((3, 5),),)),
    _row("lu tall", lambda m, x: m.linalg.lu(x)[1], (((5, 3),),)),
    _row("lu_factor", lambda m, x: m.linalg.lu_factor(x)[0], (((3, 3),), ((3, 5),), ((5, 3),))),
    _row("lu pivots", lambda m, x: m.linalg.lu_factor(x)[1], SQUARE[:2], exempt=NO_GRAD),
    _row(
        "lu_solve old",
        lambda m, a, b: _old("lu_solve", m, b, *m.linalg.lu_factor(regular(m, a))),
        (((3, 3), (3, 2)),),
    ),
    _row(
        "lu_solve",
        lambda m, a, b: m.linalg.lu_solve(*m.linalg.lu_factor(regular(m, a)), b),
        (((3, 3), (3, 2)),),
    ),
]

DECOMPOSITIONS = [
    _row("cholesky", lambda m, x: _old("cholesky", m, positive(m, x)), SQUARE),
    _row("cholesky upper", lambda m, x: m.linalg.cholesky(positive(m, x), upper=True), SQUARE[:1]),
    _row("cholesky_ex", lambda m, x: m.linalg.cholesky_ex(positive(m, x)).L, SQUARE[:1]),
    _row("qr", _qr_function, ANY),
    _row("qr r", lambda m, x: m.linalg.qr(apart(m, x), mode="r").R.abs(), TALL, exempt=TORCH),
    _row("svd", _svd_product, ANY),
    _row("svd old", lambda m, x: m.svd(apart(m, x))[2].abs(), TALL),
    _row("svd full", lambda m, x: m.linalg.svd(apart(m, x))[0][..., :2].abs(), TALL),
    _row("svdvals", lambda m, x: m.linalg.svdvals(apart(m, x)), ANY),
    _row("eigh", _eigh_function, SQUARE),
    _row("eigvalsh", lambda m, x: m.linalg.eigvalsh(symmetric(m, x)), SQUARE),
    _row("eig", _eig_function, SQUARE[:2], exempt=WAITS | {"uploads": "CuPy has no eig"}),
    _row(
        "eigvals",
        lambda m, x: m.linalg.eigvals(symmetric(m, x) + x * 0.1).real.sum(-1),
        SQUARE[:2],
        exempt=WAITS | {"uploads": "CuPy has no eig", "second": "the sum is the trace"},
    ),
]

NORMS = [
    *[
        _plain(
            f"vector_norm {order} {dim} {keep}",
            lambda m, x, order=order, dim=dim, keep=keep: m.linalg.vector_norm(x, order, dim, keep),
            (((3, 4),), ((2, 3, 4),)),
            low=0.2,
        )
        for order, dim, keep in (
            (2, None, False),
            (1, 0, True),
            (3, (0, 1), False),
            (float("inf"), -1, False),
            (-1.5, 1, True),
            (float("-inf"), None, False),
        )
    ],
    _plain(
        "vector_norm 0",
        lambda m, x: m.linalg.vector_norm(x.detach(), 0, 1),
        (((3, 4),),),
        exempt=NO_GRAD,
    ),
    *[
        _row(
            f"matrix_norm {order} {dim} {keep}",
            lambda m, x, order=order, dim=dim, keep=keep: m.linalg.matrix_norm(
                apart(m, x), order, dim, keep
            ),
            ((((3, 4)),), ((2, 3, 4),)),
        )
        for order, dim, keep in (
            ("fro", (-2, -1), False),
            ("nuc", (-1, -2), True),
            (2, (-2, -1), False),
            (-2, (-2, -1), True),
            (1, (-2, -1), False),
            (-1, (-1, -2), True),
            (float("inf"), (-2, -1), True),
            (float("-inf"), (-2, -1), False),
        )
    ],
    _plain("linalg.norm", lambda m, x: m.linalg.norm(x), (((3, 4),), ((5,),), ((2, 3, 4),))),
    _plain("linalg.norm vector", lambda m, x: m.linalg.norm(x, 3), (((5,),),)),
    _row("linalg.norm matrix", lambda m, x: m.linalg.norm(apart(m, x), "nuc"), (((3, 4),),)),
    _plain("linalg.norm dim", lambda m, x: m.linalg.norm(x, 1, (0, 2)), (((2, 3, 4),),), low=0.1),
    _row("cond", lambda m, x: m.linalg.cond(apart(m, x)), ANY),
    _row("cond 1", lambda m, x: m.linalg.cond(regular(m, x), 1), SQUARE[:2], exempt=TORCH),
    _row("cond -2", lambda m, x: m.linalg.cond(apart(m, x), -2), ANY[:1]),
    _row("matrix_rank", lambda m, x: m.linalg.matrix_rank(x), ANY, exempt=NO_GRAD),
    _plain("matrix_power", lambda m, x: m.matrix_power(x, 5), SQUARE[:3], exempt=SINGLE),
    _plain("matrix_power 0", lambda m, x: m.matrix_power(x, 0) * x, SQUARE[:3]),
    _row("matrix_power -2", lambda m, x: m.linalg.matrix_power(regular(m, x), -2), SQUARE[:2]),
    _row("matrix_exp", lambda m, x: m.matrix_exp(x), SQUARE, exempt=WAITS),
    _row("matrix_exp large", lambda m, x: m.linalg.matrix_exp(x * 5), SQUARE[:1], exempt=WAITS),
    _plain("linalg.diagonal", lambda m, x: m.linalg.diagonal(x, offset=1), (((2, 3, 4),),)),
]

ROWS = [*PRODUCTS, *DISTANCES, *SOLVING, *DECOMPOSITIONS, *NORMS]
