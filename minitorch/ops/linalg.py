"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

from .. import backend
from ..autograd.mode import state
from ..errors import DtypeError, ShapeError, describe
from . import primitive, product, shape
from .fused import Fused
from .primitive import Primitive, cast, finish_two


def _swap(x: Any) -> Any:
    return shape.transpose(x, -2, -1) if isinstance(x, primitive.Tensor) else x.swapaxes(-2, -1)


_MATMUL = Primitive(
    "matmul",
    product.matmul,
    (
        lambda g, a, b: _matmul(g, _swap(b)),
        lambda g, a, b: _matmul(_swap(a), g),
    ),
    (0, 1),
)


def _matmul(a: Any, b: Any) -> Any:
    """The product of operands with at least two axes each; leading axes are broadcast."""
    if not isinstance(a, primitive.Tensor) and not isinstance(b, primitive.Tensor):
        return product.matmul(a, b)
    return finish_two(_MATMUL, product.matmul(a._array, b._array), a, b)


_MATMUL.crosswise = True


def autocast_operands(*xs: Any) -> tuple[Any, ...]:
    """Tensors in the dtype that autocast asks matrix products to be computed in."""
    target, kind = state.autocast, state.autocast_device
    if target is None:
        return xs
    return tuple(
        cast(x, target)
        if x is not None
        and x._array.dtype.kind in "fV"
        and backend.device_of(x._array).type == kind
        else x
        for x in xs
    )


def _check_matmul(name: str, a: Any, b: Any) -> None:
    if a._array.dtype != b._array.dtype:
        raise DtypeError(
            f"{name}: operands must have one dtype. Got {describe(a)} @ {describe(b)}. "
            "Convert one with .to(dtype)."
        )
    primitive.check_same_device(name, [a, b])
    _check_inner(name, a, b)


def _check_inner(name: str, a: Any, b: Any) -> None:
    inner_a, inner_b = a._array.shape[-1], b._array.shape[-2 if b._array.ndim > 1 else 0]
    if inner_a != inner_b:
        hint = ""
        if b._array.ndim > 1 and b._array.shape[-1] == inner_a:
            hint = " Did you mean a @ b.T?" if b._array.ndim == 2 else " Did you mean a @ b.mT?"
        elif a._array.ndim > 1 and a._array.shape[-2] == inner_b:
            hint = " Did you mean a.T @ b?" if a._array.ndim == 2 else " Did you mean a.mT @ b?"
        raise ShapeError(
            f"{name}: inner sizes must match. Got {describe(a)} @ {describe(b)} "
            f"({inner_a} ≠ {inner_b}).{hint}"
        )


def matmul(input: Any, other: Any) -> Any:
    """The matrix product, broadcast over leading axes; vectors as in PyTorch.

    Args:
        input: f[..., n, k] or f[k].
        other: f[..., k, m] or f[k].

    Returns:
        f[..., n, m]; an axis of a vector operand disappears.

    Raises:
        DtypeError: The dtypes differ.
        ShapeError: The inner sizes differ, or an operand is 0-d.
    """
    for x in (input, other):
        if not isinstance(x, primitive.Tensor):
            raise DtypeError(
                f"matmul: both operands must be tensors. Got {describe(input)} and "
                f"{describe(other)}. Convert with minitorch.tensor(...)."
            )
    if not input._array.ndim or not other._array.ndim:
        raise ShapeError(
            f"matmul: both operands need at least one axis. Got {describe(input)} @ "
            f"{describe(other)}. Use * for scalars."
        )
    a, b = autocast_operands(input, other)
    _check_matmul("matmul", a, b)
    vector_a, vector_b = a._array.ndim == 1, b._array.ndim == 1
    if vector_a:
        a = shape.unsqueeze(a, 0)
    if vector_b:
        b = shape.unsqueeze(b, 1)
    try:
        out = _matmul(a, b)
    except ValueError:
        raise ShapeError(
            f"matmul: leading axes must be equal or 1. Got {describe(input)} @ {describe(other)}."
        ) from None
    if vector_b:
        out = shape.squeeze(out, -1)
    return shape.squeeze(out, -1 if vector_b else -2) if vector_a else out


def _fixed_rank(name: str, rank: int, *xs: Any) -> None:
    for x in xs:
        if x._array.ndim != rank:
            raise ShapeError(
                f"{name}: operands must have {rank} axes. Got "
                f"{' and '.join(describe(y) for y in xs)}. Use matmul for other ranks."
            )


def mm(input: Any, mat2: Any) -> Any:
    """The product of two matrices."""
    _fixed_rank("mm", 2, input, mat2)
    return matmul(input, mat2)


def bmm(input: Any, mat2: Any) -> Any:
    """The products of two batches of matrices, f[b,n,k] and f[b,k,m]."""
    _fixed_rank("bmm", 3, input, mat2)
    if input._array.shape[0] != mat2._array.shape[0]:
        raise ShapeError(
            f"bmm: the batches must be as long. Got {describe(input)} and {describe(mat2)}."
        )
    return matmul(input, mat2)


def mv(input: Any, vec: Any) -> Any:
    """The product of a matrix and a vector."""
    _fixed_rank("mv", 1, vec)
    _fixed_rank("mv", 2, input)
    _check_inner("mv", input, vec)
    return matmul(input, vec)


def dot(input: Any, tensor: Any) -> Any:
    """The inner product of two vectors."""
    _fixed_rank("dot", 1, input, tensor)
    _check_inner("dot", input, tensor)
    return matmul(input, tensor)


def outer(input: Any, vec2: Any) -> Any:
    """The outer product of two vectors."""
    _fixed_rank("outer", 1, input, vec2)
    return shape.unsqueeze(input, 1) * shape.unsqueeze(vec2, 0)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """`beta * input + alpha * mat1 @ mat2`."""
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    (input,) = autocast_operands(input)
    return product + (input if beta == 1 else input * beta)


def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """`beta * input + alpha * batch1 @ batch2` for batches of matrices."""
    product = bmm(batch1, batch2)
    product = product if alpha == 1 else product * alpha
    (input,) = autocast_operands(input)
    return product + (input if beta == 1 else input * beta)


# ---- linear --------------------------------------------------------------------------------------


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """`x @ weight.T + bias`."""
    out = _matmul(x, _swap(weight))
    return out if bias is None else out + bias


def _linear_forward(x: Any, weight: Any, bias: Any = None) -> tuple[Any, tuple[Any, ...]]:
    return product.linear(x, weight, bias), ()


def _linear_backward(
    g: Any, needs: list[bool], residuals: Any, x: Any, weight: Any, bias: Any
) -> tuple[Any, Any, Any]:
    return product.linear_gradients(g, x, weight, needs)


_LINEAR = Fused(
    _linear,
    _linear_forward,
    _linear_backward,
    supports=lambda x, weight, bias=None: (
        x.ndim > 1 and weight.ndim == 2 and x.dtype.kind == "f" and x.dtype.itemsize > 2
    ),
    bilinear=True,
)


def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """`y = x Aᵀ + b`.

    Args:
        input: f[..., in_features].
        weight: f[out_features, in_features].
        bias: f[out_features] or None.

    Returns:
        f[..., out_features].

    Raises:
        DtypeError: The dtypes differ.
        ShapeError: The last axis of `input` is not in_features.
    """
    x, w, b = autocast_operands(input, weight, bias)
    a, c = x._array, w._array
    if a.ndim == 0 or a.shape[-1] != c.shape[-1]:
        raise ShapeError(
            f"linear: the last axis of the input must have {c.shape[-1]} features, as the weight "
            f"{describe(w)}. Got {describe(x)}. Flatten or transpose the input, or change "
            "in_features."
        )
    if a.dtype != c.dtype or (b is not None and b._array.dtype != a.dtype):
        raise DtypeError(
            f"linear: input, weight and bias must have one dtype. Got {describe(x)}, {describe(w)}"
            f"{'' if b is None else ', ' + describe(b)}. Convert the input with .to(weight.dtype)."
        )
    if c.ndim == 1:
        out = matmul(x, w)
        return out if b is None else out + b
    if a.ndim == 1:
        return shape.squeeze(_LINEAR(shape.unsqueeze(x, 0), w, b), 0)
    return _LINEAR(x, w, b)
