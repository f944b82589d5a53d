"""What the operations of linear algebra ask of their operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..errors import DtypeError, ShapeError, SingularError, describe
from . import primitive, shape
from .complex_numbers import adjoint
from .linalg import _matmul, _swap
from .primitive import raw, wrap

product = _matmul
swap = _swap


def mH(x: Any) -> Any:
    """The adjoint of matrices; for arrays and Tensors."""
    return adjoint(x) if isinstance(x, primitive.Tensor) else x.swapaxes(-2, -1).conj()


def check_matrix(name: str, *xs: Any, square: bool = False) -> None:
    """Raises unless every operand is a batch of floating or complex (square) matrices.

    Raises:
        ShapeError: Fewer than two axes, or not square.
        DtypeError: A half type, an integer or bool, or two dtypes.
    """
    for x in xs:
        a = raw(x)
        if a.ndim < 2:
            raise ShapeError(
                f"{name}: matrices need at least 2 axes. Got {describe(x)}. "
                "Use unsqueeze for a row or a column."
            )
        if square and a.shape[-1] != a.shape[-2]:
            raise ShapeError(f"{name}: the matrices must be square. Got {describe(x)}.")
        check_precise(name, x)
        if a.dtype != raw(xs[0]).dtype:
            raise DtypeError(
                f"{name}: operands must have one dtype. Got {describe(xs[0])} and {describe(x)}. "
                "Convert one with .to(dtype)."
            )
    if len(xs) > 1:
        primitive.check_same_device(name, xs)


def check_precise(name: str, x: Any) -> None:
    """Raises for dtypes without decompositions.

    Raises:
        DtypeError: Neither float32, float64, complex64 nor complex128.
    """
    dtype = raw(x).dtype
    if dtype.kind not in "fc" or dtype.itemsize < 4:
        raise DtypeError(
            f"{name}: the operand must be float32, float64 or complex. Got {describe(x)}. "
            "Convert it with .float()."
        )


def singular(name: str, what: str, error: Exception | None = None) -> SingularError:
    """The error of matrices that have no such decomposition or inverse."""
    return SingularError(f"{name}: {what} Add a small multiple of eye, or use pinv or lstsq.")


def eye_like(x: Any) -> Any:
    """The identity matrix as large as the square matrices `x`, an array or Tensor."""
    a = raw(x)
    eye = backend.namespace(a).eye(a.shape[-1], dtype=a.dtype)
    return wrap(eye) if isinstance(x, primitive.Tensor) else eye


def diagonal_of(x: Any) -> Any:
    """The diagonals of matrices; for arrays and Tensors."""
    from .ordering import diagonal

    return diagonal(x, 0, -2, -1) if isinstance(x, primitive.Tensor) else x.diagonal(0, -2, -1)


def tril_of(x: Any, k: int = 0) -> Any:
    """The lower triangles; for arrays and Tensors."""
    return shape.tril(x, k)


def triu_of(x: Any, k: int = 0) -> Any:
    """The upper triangles; for arrays and Tensors."""
    return shape.triu(x, k)


def gufunc(name: str, function: Any, *arrays: Any, **options: Any) -> Any:
    """Runs a function of `xp.linalg`; its LinAlgError becomes ours.

    Raises:
        SingularError: The matrix has no inverse or decomposition.
    """
    try:
        with np.errstate(all="ignore"):
            return function(*arrays, **options)
    except np.linalg.LinAlgError as error:
        raise singular(name, f"{error} for {describe(arrays[0])}.") from None
