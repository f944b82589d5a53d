"""Which operations are methods and operators of Tensor."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from . import comparison as cmp
from . import (
    cumulative,
    indexing,
    inplace,
    joining,
    late,
    linalg,
    ordering,
    reduction,
    sampling,
    shape,
    softmax,
)
from . import elementwise as el
from .families import is_operand
from .inplace import in_place


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def call(self: Any, other: Any) -> Any:
        return function(other, self) if is_operand(other) else NotImplemented

    return call


def _operator(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """An in-place operator; NotImplemented for operands that are no numbers or tensors."""

    def method(self: Any, other: Any) -> Any:
        if not is_operand(other):
            return NotImplemented
        return inplace.apply_(self, name, function, other)

    return method


def _complex_numbers() -> Any:
    return importlib.import_module(f"{__package__}.complex_numbers")


class TensorMethods:
    """The operations as methods; each is the function of the same name."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Finds the operations that load on first use (`late.METHODS`) and keeps them."""
        if name not in late.METHOD_HOLDER:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        module = importlib.import_module(f"{__package__}.{late.METHOD_HOLDER[name]}")
        setattr(TensorMethods, name, getattr(module, name))
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *late.METHOD_HOLDER})

    @property
    def real(self) -> Any:
        """The real part, a view; a real tensor itself."""
        return _complex_numbers().real(self)

    @real.setter
    def real(self, value: Any) -> None:
        inplace.copy_(_complex_numbers().real(self), value)

    @property
    def imag(self) -> Any:
        """The imaginary part, a view."""
        return _complex_numbers().imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        inplace.copy_(_complex_numbers().imag(self), value)

    @property
    def H(self) -> Any:
        """The conjugate transpose of a matrix."""
        return _complex_numbers().hermitian(self)

    @property
    def mH(self) -> Any:
        """The conjugate of the last two axes exchanged."""
        return _complex_numbers().adjoint(self)

    # operators
    __add__ = el.ADD.operator
    __radd__ = _reflected(el.ADD.function)
    __iadd__ = _operator("add_", el.ADD.function)
    __sub__ = el.SUB.operator
    __rsub__ = _reflected(el.SUB.function)
    __isub__ = _operator("sub_", el.SUB.function)
    __mul__ = el.MUL.operator
    __rmul__ = _reflected(el.MUL.function)
    __imul__ = _operator("mul_", el.MUL.function)
    __truediv__ = el.DIV.operator
    __rtruediv__ = _reflected(el.DIV.function)
    __itruediv__ = _operator("div_", el.DIV.function)
    __floordiv__ = el.FLOOR_DIVIDE.operator
    __rfloordiv__ = _reflected(el.FLOOR_DIVIDE.function)
    __ifloordiv__ = _operator("floor_divide_", el.FLOOR_DIVIDE.function)
    __mod__ = el.REMAINDER.operator
    __rmod__ = _reflected(el.REMAINDER.function)
    __imod__ = _operator("remainder_", el.REMAINDER.function)
    __pow__ = el.pow
    __rpow__ = _reflected(el.POW.function)
    __ipow__ = _operator("pow_", el.pow)
    __matmul__ = linalg.matmul
    __rmatmul__ = _reflected(linalg.matmul)
    __imatmul__ = _operator("matmul_", linalg.matmul)
    __neg__ = el.neg
    __abs__ = el.abs
    __invert__ = cmp.bitwise_not
    __and__ = cmp.bitwise_and
    __rand__ = _reflected(cmp.bitwise_and)
    __iand__ = _operator("bitwise_and_", cmp.bitwise_and)
    __or__ = cmp.bitwise_or
    __ror__ = _reflected(cmp.bitwise_or)
    __ior__ = _operator("bitwise_or_", cmp.bitwise_or)
    __xor__ = cmp.bitwise_xor
    __rxor__ = _reflected(cmp.bitwise_xor)
    __ixor__ = _operator("bitwise_xor_", cmp.bitwise_xor)
    __lshift__ = cmp.bitwise_left_shift
    __rshift__ = cmp.bitwise_right_shift
    __eq__ = cmp.eq
    __ne__ = cmp.ne
    __lt__ = cmp.lt
    __le__ = cmp.le
    __gt__ = cmp.gt
    __ge__ = cmp.ge
    __getitem__ = indexing.getitem
    __setitem__ = indexing.setitem

    # elementwise
    add, sub, mul, pow = el.add, el.sub, el.mul, el.pow
    div = divide = el.divide
    true_divide, floor_divide = el.true_divide, el.floor_divide
    subtract, multiply, remainder, fmod = el.sub, el.mul, el.remainder, el.fmod
    neg = negative = el.neg
    abs = absolute = el.abs
    square, reciprocal, sqrt, rsqrt = el.square, el.reciprocal, el.sqrt, el.rsqrt
    exp, exp2, expm1 = el.exp, el.exp2, el.expm1
    log, log2, log10, log1p = el.log, el.log2, el.log10, el.log1p
    sin, cos, tan = el.sin, el.cos, el.tan
    asin = arcsin = el.asin
    acos = arccos = el.acos
    atan = arctan = el.atan
    atan2 = arctan2 = el.atan2
    sinh, cosh, tanh = el.sinh, el.cosh, el.tanh
    asinh, acosh, atanh = el.asinh, el.acosh, el.atanh
    sigmoid, relu, erf, logaddexp = el.sigmoid, el.relu, el.erf, el.logaddexp
    sign, floor, ceil, trunc, round = el.sign, el.floor, el.ceil, el.trunc, el.round
    eq, ne, lt, le, gt, ge = cmp.eq, cmp.ne, cmp.lt, cmp.le, cmp.gt, cmp.ge
    logical_and, logical_or, logical_xor = cmp.logical_and, cmp.logical_or, cmp.logical_xor
    logical_not, bitwise_not, bitwise_and = cmp.logical_not, cmp.bitwise_not, cmp.bitwise_and
    bitwise_or, bitwise_xor = cmp.bitwise_or, cmp.bitwise_xor
    bitwise_left_shift, bitwise_right_shift = cmp.bitwise_left_shift, cmp.bitwise_right_shift
    isnan, isinf, isfinite, signbit = cmp.isnan, cmp.isinf, cmp.isfinite, cmp.signbit
    isclose, allclose, equal = cmp.isclose, cmp.allclose, cmp.equal
    maximum, minimum = el.maximum, el.minimum
    clamp = clip = el.clamp
    clamp_min, clamp_max = el.clamp_min, el.clamp_max
    masked_fill, clone = el.masked_fill, el.clone

    def where(self, condition: Any, other: Any) -> Any:
        """This tensor where `condition` is true, else `other`."""
        return el.where(condition, self, other)

    # reduction
    sum, mean, var, std, prod = (
        reduction.sum,
        reduction.mean,
        reduction.var,
        reduction.std,
        reduction.prod,
    )
    max, min, amax, amin = reduction.max, reduction.min, reduction.amax, reduction.amin
    argmax, argmin = reduction.argmax, reduction.argmin
    all, any, count_nonzero = reduction.all, reduction.any, reduction.count_nonzero
    cumsum, cumprod, logsumexp = cumulative.cumsum, cumulative.cumprod, softmax.logsumexp
    softmax, log_softmax, norm = softmax.softmax, softmax.log_softmax, reduction.norm

    # shape
    reshape, view, view_as, reshape_as = shape.reshape, shape.view, shape.view_as, shape.reshape_as
    flatten, unflatten, ravel = shape.flatten, shape.unflatten, shape.ravel
    squeeze, unsqueeze, permute = shape.squeeze, shape.unsqueeze, shape.permute
    transpose = swapaxes = shape.transpose
    t, movedim, moveaxis = shape.t, shape.movedim, shape.movedim
    expand, expand_as, broadcast_to = shape.expand, shape.expand_as, shape.broadcast_to
    repeat, tile, narrow, select = shape.repeat, shape.tile, joining.narrow, joining.select
    split, chunk, unbind = joining.split, joining.chunk, joining.unbind
    flip, roll, tril, triu, contiguous = (
        shape.flip,
        shape.roll,
        shape.tril,
        shape.triu,
        shape.contiguous,
    )

    # indexing
    gather, scatter, scatter_add = indexing.gather, indexing.scatter, indexing.scatter_add
    index_select, masked_select = indexing.index_select, indexing.masked_select
    take_along_dim, nonzero, unique = indexing.take_along_dim, indexing.nonzero, ordering.unique
    sort, argsort, topk = ordering.sort, ordering.argsort, ordering.topk
    diagonal, diag = ordering.diagonal, ordering.diag

    # linear algebra
    matmul, mm, bmm, mv, dot = linalg.matmul, linalg.mm, linalg.bmm, linalg.mv, linalg.dot
    outer, addmm, baddbmm = linalg.outer, linalg.addmm, linalg.baddbmm

    # in place
    add_, sub_ = in_place("add_", el.add), in_place("sub_", el.sub)
    mul_, div_ = in_place("mul_", el.mul), in_place("div_", el.divide)
    pow_, neg_, abs_ = (
        in_place("pow_", el.pow),
        in_place("neg_", el.neg),
        in_place("abs_", el.abs),
    )
    exp_, log_, sqrt_ = (
        in_place("exp_", el.exp),
        in_place("log_", el.log),
        in_place("sqrt_", el.sqrt),
    )
    rsqrt_, square_ = in_place("rsqrt_", el.rsqrt), in_place("square_", el.square)
    reciprocal_ = in_place("reciprocal_", el.reciprocal)
    sin_, cos_ = in_place("sin_", el.sin), in_place("cos_", el.cos)
    relu_, sigmoid_ = in_place("relu_", el.relu), in_place("sigmoid_", el.sigmoid)
    tanh_ = in_place("tanh_", el.tanh)
    floor_, ceil_, round_ = (
        in_place("floor_", el.floor),
        in_place("ceil_", el.ceil),
        in_place("round_", el.round),
    )
    clamp_ = clip_ = in_place("clamp_", el.clamp)
    clamp_min_ = in_place("clamp_min_", el.clamp_min)
    clamp_max_ = in_place("clamp_max_", el.clamp_max)
    masked_fill_ = in_place("masked_fill_", el.masked_fill)
    scatter_ = in_place("scatter_", indexing.scatter)
    scatter_add_ = in_place("scatter_add_", indexing.scatter_add)
    logical_not_ = in_place("logical_not_", cmp.logical_not)
    tril_, triu_ = in_place("tril_", shape.tril), in_place("triu_", shape.triu)
    copy_, fill_, zero_ = inplace.copy_, inplace.fill_, inplace.zero_

    # random
    uniform_, normal_, bernoulli_ = sampling.uniform_, sampling.normal_, sampling.bernoulli_
    exponential_, random_ = sampling.exponential_, sampling.random_
    bernoulli, multinomial = sampling.bernoulli, sampling.multinomial
