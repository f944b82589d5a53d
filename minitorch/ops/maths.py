"""Elementwise operations that few programs use; special functions stand in `special_functions`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, describe
from . import comparison as cmp
from . import elementwise as el
from . import primitive
from .complex_numbers import sgn
from .families import Binary, Unary, nondiff, operands
from .inplace import in_place
from .primitive import OUT, Primitive, cast, raw, wrap

# ---- two operands --------------------------------------------------------------------------------

_LOGADDEXP2 = Binary(
    "logaddexp2",
    "logaddexp2",
    (lambda g, a, b, out: g * el.exp2(a - out), lambda g, a, b, out: g * el.exp2(b - out)),
    (0, 1, OUT),
    floating=True,
)
_HYPOT = Binary(
    "hypot",
    "hypot",
    (lambda g, a, b, out: g * a / out, lambda g, a, b, out: g * b / out),
    (0, 1, OUT),
    floating=True,
)


def _copysign_rule(g: Any, a: Any, out: Any) -> Any:
    """±1, and 0 where `a` is 0."""
    safe = el.where(a == 0, el.ones_like(a), a)
    return el.where(a == 0, el.zeros_like(out), g * el.sign(safe) * el.sign(out))


_COPYSIGN = Binary(
    "copysign",
    "copysign",
    (_copysign_rule, lambda g, a, out: el.zeros_like(out)),
    (0, OUT),
    floating=True,
)


def _wins(g: Any, wins: Any) -> Any:
    return el.where(wins, g, el.zeros_like(g))


_FMAX = Binary(
    "fmax",
    "fmax",
    (
        lambda g, a, b: _wins(g, (a >= b) | (b != b)),
        lambda g, a, b: _wins(g, ~((a >= b) | (b != b))),
    ),
    (0, 1),
)
_FMIN = Binary(
    "fmin",
    "fmin",
    (
        lambda g, a, b: _wins(g, (a <= b) | (b != b)),
        lambda g, a, b: _wins(g, ~((a <= b) | (b != b))),
    ),
    (0, 1),
)
logaddexp2, hypot, fmax, fmin = (op.function for op in (_LOGADDEXP2, _HYPOT, _FMAX, _FMIN))
copysign = _COPYSIGN.function


def xlogy(input: Any, other: Any) -> Any:
    """`input * log(other)`, which is 0 where `input` is 0 and `other` is not NaN."""
    return _times_log(input, other, el.log)


def xlog1py(input: Any, other: Any) -> Any:
    """`input * log(1 + other)`, which is 0 where `input` is 0 and `other` is not NaN."""
    return _times_log(input, other, el.log1p)


def _times_log(input: Any, other: Any, logarithm: Any) -> Any:
    a, b = operands("xlogy", input, other, floating=True)
    # Where the logarithm is finite the product is 0 by itself, and its gradient the logarithm.
    infinite = cmp.logical_not(cmp.isfinite(logarithm(b.detach())))
    zero = cmp.logical_and(cmp.logical_and(a == 0, b == b), infinite)
    inside = el.where(zero, el.ones_like(b), b)
    return el.where(zero, el.zeros_like(a) * el.zeros_like(b) + a * 0, a * logarithm(inside))


def ldexp(input: Any, other: Any) -> Any:
    """`input * 2**other`."""
    return input * el.pow(2.0, other)


def rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """`other - alpha * input`."""
    return el.SUB.function(other, input if alpha == 1 else input * alpha)


def float_power(input: Any, exponent: Any) -> Any:
    """`input ** exponent` in float64, or complex128 where one is complex."""
    some_complex = dtypes.result_type(input, exponent).is_complex
    target = dtypes.complex128 if some_complex else dtypes.float64

    def wide(x: Any) -> Any:
        if isinstance(x, primitive.Tensor):
            return cast(x, target.numpy)
        return complex(x) if some_complex else float(x)

    return el.pow(wide(input), wide(exponent))


def heaviside(input: Any, values: Any) -> Any:
    """0 below 0, 1 above 0, and `values` at 0; no gradient.

    Raises:
        DtypeError: The two dtypes differ.
    """
    if input._array.dtype != values._array.dtype:
        raise DtypeError(
            f"heaviside: both operands must have one dtype. Got {describe(input)} and "
            f"{describe(values)}. Convert one with .to(dtype)."
        )
    a, b = operands("heaviside", input.detach(), values.detach())
    steps = cast(a > 0, a._array.dtype)
    return el.where(a == 0, b, el.where(a != a, a, steps) if a.is_floating_point() else steps)


def _whole(name: str) -> Any:
    op = Binary(name, name, (None, None), accepts_bool=False)

    def call(input: Any, other: Any) -> Any:
        if dtypes.result_type(input, other).numpy.kind not in "iu":
            raise DtypeError(
                f"{name}: both operands must be integers. Got {describe(input)} and "
                f"{describe(other)}. Convert with .long()."
            )
        return op.function(input, other)

    call.__name__ = call.__qualname__ = name
    return call


gcd, lcm = _whole("gcd"), _whole("lcm")
gcd.__doc__ = "The greatest common divisor of integers."
lcm.__doc__ = "The least common multiple of integers."


def nextafter(input: Any, other: Any) -> Any:
    """The next float after `input` towards `other`; no gradient.

    Raises:
        DtypeError: The operands are not floating.
    """
    a, b = operands("nextafter", input, other)
    if a._array.dtype.kind not in "fV":
        raise DtypeError(
            f"nextafter: the operands must be floating. Got {describe(a)}. Convert with .float()."
        )
    return wrap(backend.namespace(a._array).nextafter(a._array, b._array))


def lerp(input: Any, end: Any, weight: Any) -> Any:
    """`input + weight * (end - input)`."""
    return input + weight * (end - input)


def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 * tensor2`."""
    return input + value * (tensor1 * tensor2)


def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: float = 1) -> Any:
    """`input + value * tensor1 / tensor2`."""
    return input + value * (tensor1 / tensor2)


# ---- one operand ---------------------------------------------------------------------------------


def _sinc_rule(g: Any, a: Any, out: Any) -> Any:
    zero = a == 0
    safe = el.where(zero, el.ones_like(a), a)
    return el.where(zero, el.zeros_like(g), g * (el.cos(safe * math.pi) - out) / safe)


sinc = Unary(
    "sinc",
    lambda a: backend.namespace(a).sinc(a).astype(a.dtype, copy=False),
    _sinc_rule,
    (0, OUT),
    floating=True,
)


def logit(input: Any, eps: float | None = None) -> Any:
    """`log(x / (1-x))`; with `eps`, of x limited to `[eps, 1-eps]`."""
    x = cast(input, dtypes.get_default_dtype().numpy) if raw(input).dtype.kind in "iub" else input
    if eps is not None:
        x = el.clamp(x, eps, 1 - eps)
    return el.log(x / (1 - x))


def deg2rad(input: Any) -> Any:
    """Degrees to radians."""
    return input * (math.pi / 180)


def rad2deg(input: Any) -> Any:
    """Radians to degrees."""
    return input * (180 / math.pi)


def positive(input: Any) -> Any:
    """The tensor itself.

    Raises:
        DtypeError: It is bool.
    """
    if raw(input).dtype.kind == "b":
        raise DtypeError(f"positive: bool has no sign. Got {describe(input)}. Use .int() first.")
    return input


class Parts(NamedTuple):
    """`mantissa * 2**exponent`."""

    mantissa: Any
    exponent: Any


_MANTISSA = Primitive(
    "frexp",
    lambda a, *, exponent: backend.namespace(a).frexp(a)[0],
    (lambda g, *, exponent: g / el.exp2(cast_like(exponent, g)),),
)


def cast_like(exponent: Any, g: Any) -> Any:
    """`exponent`, an array, as what `g` is, in its dtype."""
    array = exponent.astype(raw(g).dtype)
    return wrap(array) if isinstance(g, primitive.Tensor) else array


def frexp(input: Any) -> Parts:
    """`(mantissa, exponent)` with `|mantissa|` from 0.5 to 1 and int32 exponents."""
    a = input._array
    if a.dtype.kind not in "fV":
        raise DtypeError(
            f"frexp: the input must be floating. Got {describe(input)}. Convert with .float()."
        )
    exponent = backend.namespace(a).frexp(a)[1].astype(np.int32, copy=False)
    return Parts(_MANTISSA(input, exponent=exponent), wrap(exponent))


def nan_to_num(
    input: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Any:
    """Replaces NaN and the infinities; None stands for the largest finite values."""
    if not input.is_floating_point():
        return input.clone()
    info = dtypes.finfo(input.dtype)
    out = el.where(cmp.isnan(input), input.new_tensor(nan), input)
    out = el.where(out == math.inf, out.new_tensor(info.max if posinf is None else posinf), out)
    return el.where(out == -math.inf, out.new_tensor(info.min if neginf is None else neginf), out)


def frac(input: Any) -> Any:
    """The part behind the point: `input - trunc(input)`."""
    if raw(input).dtype.kind in "iub":
        raise DtypeError(
            f"frac: the input must be floating. Got {describe(input)}. Convert with .float()."
        )
    return input - el.trunc(input)


# ---- questions: bool, no gradient ----------------------------------------------------------------

isposinf = nondiff("isposinf", lambda a: a == math.inf)
isneginf = nondiff("isneginf", lambda a: a == -math.inf)


def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Any:
    """True where an element is one of `test_elements`.

    Args:
        elements: Tensor or number.
        test_elements: Tensor or number.
        assume_unique: Both hold each value once; nothing depends on it.
        invert: True where it is none of them instead.

    Raises:
        ArgumentError: Both are numbers.
    """
    tensors = [x for x in (elements, test_elements) if isinstance(x, primitive.Tensor)]
    if not tensors:
        raise ArgumentError("isin: at least one operand must be a tensor. Got two numbers.")
    where = tensors[0].device
    made = [
        x if isinstance(x, primitive.Tensor) else wrap(np.asarray(x)).to(where)
        for x in (elements, test_elements)
    ]
    primitive.check_same_device("isin", made)
    a, b = (x._array for x in made)
    if a.dtype != b.dtype:
        common = dtypes.result_type(elements, test_elements).numpy
        a, b = a.astype(common), b.astype(common)
    hit = backend.namespace(a).isin(a, b.reshape(-1))
    return wrap(~hit if invert else hit)


# ---- other names and in-place forms --------------------------------------------------------------

fix = el.trunc
arccosh, arcsinh, arctanh = el.acosh, el.asinh, el.atanh
greater, greater_equal, less, less_equal, not_equal = cmp.gt, cmp.ge, cmp.lt, cmp.le, cmp.ne

copysign_, hypot_, xlogy_ = (
    in_place("copysign_", copysign),
    in_place("hypot_", hypot),
    in_place("xlogy_", xlogy),
)
ldexp_, float_power_ = in_place("ldexp_", ldexp), in_place("float_power_", float_power)
heaviside_, gcd_, lcm_ = (
    in_place("heaviside_", heaviside),
    in_place("gcd_", gcd),
    in_place("lcm_", lcm),
)
nextafter_, sinc_, logit_ = (
    in_place("nextafter_", nextafter),
    in_place("sinc_", sinc),
    in_place("logit_", logit),
)
deg2rad_, rad2deg_ = in_place("deg2rad_", deg2rad), in_place("rad2deg_", rad2deg)
nan_to_num_ = in_place("nan_to_num_", nan_to_num)
frac_ = in_place("frac_", frac)
lerp_, addcmul_ = in_place("lerp_", lerp), in_place("addcmul_", addcmul)
addcdiv_ = in_place("addcdiv_", addcdiv)
sgn_, fix_ = in_place("sgn_", sgn), in_place("fix_", fix)
