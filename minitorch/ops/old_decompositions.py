"""`qr`, `svd` and `lu_solve` with the arguments and results of the names outside of `linalg`."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import decomposition, lu_factors
from .decomposition import QR
from .matrix_checks import mH


class SVD(NamedTuple):
    """What `svd` returns: `V`, not its adjoint."""

    U: Any
    S: Any
    V: Any


def qr(input: Any, some: bool = True) -> QR:
    """`linalg.qr` with `some` for `mode="reduced"`."""
    return decomposition.qr(input, "reduced" if some else "complete")


def svd(input: Any, some: bool = True, compute_uv: bool = True) -> SVD:
    """`linalg.svd` that returns `V`, with as few vectors as possible for `some`."""
    U, S, Vh = decomposition.svd(input, not some)
    V = mH(Vh)
    return SVD(U, S, V) if compute_uv else SVD(U * 0, S, V * 0)


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """`linalg.lu_solve` with the right sides first."""
    return lu_factors.lu_solve(LU_data, LU_pivots, b)
