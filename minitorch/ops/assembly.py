"""Cross products, powers, statistics of rows, and distances."""

from __future__ import annotations

from typing import Any

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import elementwise as el
from . import joining, linalg, reduction, shape
from .autocasting import full
from .complex_numbers import conj, is_complex, real
from .cumulative import cumprod
from .ordering import diagonal
from .primitive import cast, wrap


def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """The cross product along an axis of length 3, broadcast over the others.

    Args:
        input, other: f[..., 3].
        dim: The axis; None for the first of length 3.

    Raises:
        ShapeError: No such axis.
    """
    if dim is None:
        sizes = shape.broadcast_shapes(input.shape, other.shape)
        if 3 not in sizes:
            raise ShapeError(
                f"cross: an axis must have length 3. Got {describe(input)} and {describe(other)}."
            )
        dim = sizes.index(3) - len(sizes)
    return linalg_cross(input, other, dim=dim)


def linalg_cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """The cross product along the axis `dim` of length 3, broadcast over the others.

    Args:
        input, other: With as many axes.
    """
    if input.ndim != other.ndim:
        raise ShapeError(
            f"cross: both operands must have as many axes. Got {describe(input)} and "
            f"{describe(other)}. Use unsqueeze or expand."
        )
    axis = shape.axis_of("cross", input.ndim, dim)
    if input.ndim == 0 or not input.shape[axis] == other.shape[axis] == 3:
        raise ShapeError(
            f"cross: the axis {dim} must have length 3 in both. Got {describe(input)} and "
            f"{describe(other)}."
        )
    up = shape.roll(input, -1, axis) * shape.roll(other, -2, axis)
    return up - shape.roll(input, -2, axis) * shape.roll(other, -1, axis)


def trace(input: Any) -> Any:
    """The sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise ShapeError(f"trace: a matrix is needed. Got {describe(input)}. Use diagonal and sum.")
    return reduction.sum(diagonal(full(input)))


def linalg_vander(x: Any, *, N: int | None = None) -> Any:
    """The powers `x⁰ … x^(N-1)` along a new last axis."""
    count = x.shape[-1] if N is None else N
    if count < 0:
        raise ArgumentError(f"vander: N must not be negative. Got {N}.")
    x = reduction.widened(x, None)
    column = shape.unsqueeze(x, -1)
    if count <= 1:
        return el.ones_like(shape.broadcast_to(column, (*x.shape, count)))
    powers = cumprod(shape.broadcast_to(column, (*x.shape, count - 1)), -1)
    return joining.cat([el.ones_like(column), powers], -1)


# ---- statistics ----------------------------------------------------------------------------------


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariances of the rows.

    Args:
        input: f[variables, observations] or f[observations].
        correction: Subtracted from the number of observations.
        fweights: i[observations], how often each was seen.
        aweights: f[observations], how much each counts.

    Returns:
        f[variables, variables], or 0-d for a vector.

    Raises:
        ShapeError: More than two axes.
        DtypeError: bool, or fractional `fweights`.
    """
    if input.ndim > 2:
        raise ShapeError(f"cov: at most 2 axes are allowed. Got {describe(input)}.")
    if input._array.dtype.kind == "b":
        raise DtypeError(f"cov: bool has no covariance. Got {describe(input)}. Use .float().")
    if fweights is not None and fweights._array.dtype.kind not in "iu":
        raise DtypeError(f"cov: fweights must be integers. Got {describe(fweights)}.")
    if input._array.dtype.kind in "iu":
        input = cast(input, dtypes.get_default_dtype().numpy)
    x = shape.reshape(input, (1, -1)) if input.ndim < 2 else input
    weights = fweights
    if aweights is not None:
        weights = aweights if fweights is None else fweights * aweights
    if weights is None:
        total: Any = x.shape[1]
        mean = reduction.mean(x, 1, True)
        freedom: Any = max(total - correction, 0)
    else:
        weights = cast(weights, real(x)._array.dtype)
        total = reduction.sum(weights)
        mean = reduction.sum(x * weights, 1, True) / total
        shrink = 1 if aweights is None else reduction.sum(weights * aweights) / total
        freedom = el.clamp_min(total - correction * shrink, 0)
    centred = x - mean
    weighted = centred if weights is None else centred * weights
    products = linalg.mm(weighted, conj(shape.t(centred)))
    if isinstance(freedom, int):
        freedom = wrap(backend.namespace(x._array).full((), freedom, real(x)._array.dtype))
    return shape.squeeze(products / freedom)


def corrcoef(input: Any) -> Any:
    """The correlations of the rows, from -1 to 1."""
    c = cov(input)
    if not c.ndim:
        return c / c
    scale = el.sqrt(real(diagonal(c)))
    out = c / shape.unsqueeze(scale, 1) / scale
    if is_complex(out):
        from .complex_numbers import complex, imag

        return complex(el.clamp(real(out), -1, 1), el.clamp(imag(out), -1, 1))
    return el.clamp(out, -1, 1)


# ---- distances -----------------------------------------------------------------------------------

_MANY = 25  # rows from which PyTorch takes the matrix product
_MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)


def cdist(
    x1: Any,
    x2: Any,
    p: float = 2.0,
    compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary",
) -> Any:
    """The distances of each row of `x1` to each of `x2`; the gradient at 0 is 0.

    Args:
        x1: f[..., n, d].
        x2: f[..., m, d].
        p: The order of the norm, 0 to inf.
        compute_mode: Whether p = 2 is computed by a matrix product, which is quicker and less
            exact; by default for more than 25 rows.

    Returns:
        f[..., n, m].

    Raises:
        ShapeError: Fewer than two axes, or rows of different lengths.
        ArgumentError: A negative order or another mode.
    """
    x1, x2 = full(x1), full(x2)
    _check_rows(x1, x2)
    mode = _MODES[0] if compute_mode is None else compute_mode
    if p < 0 or mode not in _MODES:
        raise ArgumentError(
            f"cdist: p must not be negative, and compute_mode one of {', '.join(_MODES)}. "
            f"Got p={p}, {compute_mode!r}."
        )
    many = max(x1.shape[-2], x2.shape[-2]) > _MANY
    if p == 2 and (mode == _MODES[1] or (mode == _MODES[0] and many)):
        squares = [reduction.sum(el.square(x), -1, True) for x in (x1, x2)]
        products = linalg.matmul(x1, shape.mT(x2))
        total = squares[0] + shape.mT(squares[1]) - products * 2
        return reduction.root(el.clamp_min(total, 0))
    difference = shape.unsqueeze(x1, -2) - shape.unsqueeze(x2, -3)
    return _lengths(difference, p)


def _lengths(difference: Any, p: float) -> Any:
    if not difference.shape[-1]:
        return reduction.sum(difference, -1)
    return reduction.norm(difference, p, -1)


def _check_rows(x1: Any, x2: Any) -> None:
    if min(x1.ndim, x2.ndim) < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: both operands must be matrices with rows of one length. Got {describe(x1)} "
            f"and {describe(x2)}."
        )
    for x in (x1, x2):
        if x._array.dtype.kind not in "fV":
            raise DtypeError(f"cdist: the operands must be floating. Got {describe(x)}.")


def linalg_diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices as the last axis; a view.

    Args:
        A: [..., m, n].
        offset: How far above the main diagonal.
        dim1, dim2: The axes of a matrix.
    """
    return diagonal(A, offset, dim1, dim2)
