"""Elementwise operations. Rules read: g is the gradient of the output, then the saved values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..errors import ArgumentError, DtypeError, GraphError, ShapeError, describe
from . import families, primitive
from .comparison import logical_and
from .compiled import compiled, where_arrays
from .families import Binary, Unary, operands
from .primitive import OUT, Primitive, cast, finish, raw
from .recording import constant
from .special import erf_array

# ---- arithmetic ----------------------------------------------------------------------------------

ADD = Binary("add", "add", (lambda g: g, lambda g: g), numbers=True)
SUB = Binary("sub", "subtract", (lambda g: g, lambda g: -g), accepts_bool=False, numbers=True)
MUL = Binary(
    "mul",
    "multiply",
    (lambda g, a, b: g * b, lambda g, a, b: g * a),
    (0, 1),
    numbers=True,
)
DIV = Binary(
    "div",
    "true_divide",
    (lambda g, a, b: g / b, lambda g, a, b: -g * (a / b) / b),
    (0, 1),
    floating=True,
    numbers=True,
)


def _pow_by(a: Any, b: Any) -> Any:
    """d(a**b)/da without the factor g: 0 where b is 0, also at a = 0."""
    return where(b == 0, zeros_like(a * b), b * pow(a, b - 1))


def _pow_exponent(a: Any, b: Any, out: Any) -> Any:
    """d(a**b)/db: 0 where a is 0 and b is not negative."""
    if raw(a).dtype.kind == "c":
        return where(a == 0, zeros_like(out), out * log(where(a == 0, ones_like(a), a)))
    safe = where(a > 0, a, ones_like(a))
    flat = where(b >= 0, zeros_like(out), out * log(a))
    return where(a == 0, flat, out * where(a < 0, log(a), log(safe)))


POW = Binary(
    "pow",
    "power",
    (lambda g, a, b, out: g * _pow_by(a, b), lambda g, a, b, out: g * _pow_exponent(a, b, out)),
    (0, 1, OUT),
)
MAXIMUM = Binary(
    "maximum",
    "maximum",
    (lambda g, a, b: g * _share(a, b, a > b), lambda g, a, b: g * _share(a, b, b > a)),
    (0, 1),
)
MINIMUM = Binary(
    "minimum",
    "minimum",
    (lambda g, a, b: g * _share(a, b, a < b), lambda g, a, b: g * _share(a, b, b < a)),
    (0, 1),
)


def _radius(a: Any, b: Any) -> Any:
    """`a² + b²`, and 1 at the origin, where the gradient of atan2 is 0."""
    d = a * a + b * b
    return where(d == 0, ones_like(d), d)


ATAN2 = Binary(
    "atan2",
    "arctan2",
    (lambda g, a, b: g * b / _radius(a, b), lambda g, a, b: -g * a / _radius(a, b)),
    (0, 1),
    floating=True,
)
FMOD = Binary(
    "fmod",
    "fmod",
    (lambda g, a, b: g, lambda g, a, b: -g * trunc(a / b)),
    (0, 1),
    accepts_bool=False,
)
REMAINDER = Binary(
    "remainder",
    "remainder",
    (lambda g, a, b: g, lambda g, a, b: -g * floor(a / b)),
    (0, 1),
    accepts_bool=False,
)
FLOOR_DIVIDE = Binary(
    "floor_divide",
    "floor_divide",
    (lambda g: _no_derivative("floor_divide"), lambda g: _no_derivative("floor_divide")),
    accepts_bool=False,
)
LOGADDEXP = Binary(
    "logaddexp",
    "logaddexp",
    (lambda g, a, b, out: g * exp(a - out), lambda g, a, b, out: g * exp(b - out)),
    (0, 1, OUT),
    floating=True,
)


def _no_derivative(name: str) -> None:
    raise GraphError(
        f"backward: {name} has no derivative. Use detach() on its operands, or true division."
    )


add_function, sub_function, mul, div = ADD.function, SUB.function, MUL.function, DIV.function
pow_function = POW.function
maximum, minimum, atan2 = MAXIMUM.function, MINIMUM.function, ATAN2.function
fmod, remainder, floor_divide = FMOD.function, REMAINDER.function, FLOOR_DIVIDE.function
logaddexp = LOGADDEXP.function
MUL.crosswise = True


def _share(a: Any, b: Any, wins: Any) -> Any:
    """1 where the operand wins, one half where both are equal (PyTorch's rule)."""
    dtype = raw(a).dtype
    return cast(wins, dtype) + cast(a == b, dtype) * 0.5


def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """`input + alpha * other`, with broadcasting and promotion."""
    return add_function(input, other if alpha == 1 else mul(other, alpha))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """`input - alpha * other`, with broadcasting and promotion."""
    return sub_function(input, other if alpha == 1 else mul(other, alpha))


def pow(input: Any, exponent: Any) -> Any:
    """`input ** exponent`; small whole exponents are products.

    Raises:
        ArgumentError: An integer tensor is raised to a negative whole power.
    """
    if type(exponent) in (int, float) and isinstance(input, primitive.Tensor):
        kind = input._array.dtype.kind
        if exponent == 2 and kind != "b" and (kind not in "iu" or type(exponent) is int):
            return square(input)
        if exponent == 1 and kind != "b" and type(exponent) is int:
            return input.clone()
        if kind in "iu" and type(exponent) is int and exponent < 0:
            raise ArgumentError(
                f"pow: integers have no negative powers. Got {describe(input)} ** {exponent}. "
                "Convert with .float() first."
            )
        if kind not in "iub":
            return _POWER(input, exponent=exponent)
    return pow_function(input, exponent)


def _power_forward(a: Any, *, exponent: float) -> Any:
    if exponent == 0.5:
        return backend.namespace(a).sqrt(a)
    return a * a * a if exponent == 3 else a**exponent


def _power_rule(g: Any, a: Any, *, exponent: float) -> Any:
    if exponent == 0:
        return g * 0
    return g * (
        exponent * pow(a, exponent - 1)
        if isinstance(a, primitive.Tensor)
        else exponent * _power_forward(a, exponent=exponent - 1)
    )


_POWER = Unary("pow", _power_forward, _power_rule, (0,))
square = Unary(
    "square",
    lambda a: a * (a.astype(np.int64) if a.dtype.kind == "b" else a),
    lambda g, a: g * (a + a),
    (0,),
)
neg = Unary("neg", "negative", lambda g: -g, accepts_bool=False)
abs = Unary("abs", "absolute", lambda g, a: g * _direction(a), (0,), accepts_bool=False)
reciprocal = Unary("reciprocal", lambda a: 1 / a, lambda g, o: -g * o * o, (OUT,), floating=True)


def _direction(a: Any) -> Any:
    """d|a|/da, 0 at 0."""
    if raw(a).dtype.kind != "c":
        return sign(a)
    from .complex_numbers import conj, sgn

    return conj(sgn(a))


def true_divide(input: Any, other: Any) -> Any:
    """`input / other` in floating point."""
    return div(input, other)


def divide(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """`input / other`; `rounding_mode` is None, `"trunc"` or `"floor"`.

    Raises:
        ArgumentError: Another rounding mode.
    """
    if rounding_mode is None:
        return div(input, other)
    if rounding_mode == "floor":
        return floor_divide(input, other)
    if rounding_mode == "trunc":
        if dtypes.result_type(input, other).is_floating_point:
            return trunc(div(input, other))
        whole = floor_divide(input, other)
        rest = input - whole * other
        return whole + logical_and(rest != 0, (rest < 0) != (input < 0))
    raise ArgumentError(
        f"div: rounding_mode must be None, 'trunc' or 'floor'. Got {rounding_mode!r}."
    )


# ---- exponentials, logarithms, roots -------------------------------------------------------------

exp = Unary("exp", "exp", lambda g, o: g * o, (OUT,), floating=True)
exp2 = Unary("exp2", "exp2", lambda g, o: g * o * math.log(2), (OUT,), floating=True)
expm1 = Unary("expm1", "expm1", lambda g, o: g * (o + 1), (OUT,), floating=True)
log = Unary("log", "log", lambda g, a: g / a, (0,), floating=True)
log2 = Unary("log2", "log2", lambda g, a: g / (a * math.log(2)), (0,), floating=True)
log10 = Unary("log10", "log10", lambda g, a: g / (a * math.log(10)), (0,), floating=True)
log1p = Unary("log1p", "log1p", lambda g, a: g / (a + 1), (0,), floating=True)
sqrt = Unary("sqrt", "sqrt", lambda g, o: g / (o + o), (OUT,), floating=True)
rsqrt = Unary(
    "rsqrt",
    lambda a: 1 / backend.namespace(a).sqrt(a),
    lambda g, o: g * o * o * o * -0.5,
    (OUT,),
    floating=True,
)

# ---- trigonometry --------------------------------------------------------------------------------

sin = Unary("sin", "sin", lambda g, a: g * cos(a), (0,), floating=True)
cos = Unary("cos", "cos", lambda g, a: -g * sin(a), (0,), floating=True)
tan = Unary("tan", "tan", lambda g, o: g * (1 + o * o), (OUT,), floating=True)
asin = Unary("asin", "arcsin", lambda g, a: g * rsqrt(1 - a * a), (0,), floating=True)
acos = Unary("acos", "arccos", lambda g, a: -g * rsqrt(1 - a * a), (0,), floating=True)
atan = Unary("atan", "arctan", lambda g, a: g / (1 + a * a), (0,), floating=True)
sinh = Unary("sinh", "sinh", lambda g, a: g * cosh(a), (0,), floating=True)
cosh = Unary("cosh", "cosh", lambda g, a: g * sinh(a), (0,), floating=True)
tanh = Unary("tanh", "tanh", lambda g, o: g * (1 - o * o), (OUT,), floating=True)
asinh = Unary("asinh", "arcsinh", lambda g, a: g * rsqrt(a * a + 1), (0,), floating=True)
acosh = Unary("acosh", "arccosh", lambda g, a: g * rsqrt(a - 1) * rsqrt(a + 1), (0,), floating=True)
atanh = Unary("atanh", "arctanh", lambda g, a: g / (1 - a * a), (0,), floating=True)

# ---- activations that other operations are made of -----------------------------------------------


def sigmoid_array(a: Any) -> Any:
    """The logistic function without overflow: both branches use exp(-|a|)."""
    xp = backend.namespace(a)
    if a.dtype.kind == "c":
        return 1 / (1 + xp.exp(-a))
    e = xp.exp(-xp.abs(a))
    one = a.dtype.type(1)
    return xp.where(a >= 0, one, e) / (one + e)


sigmoid = Unary("sigmoid", sigmoid_array, lambda g, o: g * (o * (1 - o)), (OUT,), floating=True)


_ZEROS = {char: np.zeros((), char) for char in "fd"}


def _relu_forward(a: Any) -> Any:
    if type(a) is not np.ndarray or a.dtype.char not in _ZEROS:
        return backend.namespace(a).maximum(a, a.dtype.type(0))
    return np.maximum(a, _ZEROS[a.dtype.char])


relu = compiled(
    Unary(
        "relu",
        _relu_forward,
        lambda g, o: where(o <= 0, zeros_like(g), g),
        (OUT,),
        accepts_bool=False,
    ),
    kinds="fd",
)
erf = Unary(
    "erf",
    erf_array,
    lambda g, a: g * exp(-(a * a)) * (2 / math.sqrt(math.pi)),
    (0,),
    floating=True,
)

for _op in (exp, expm1, log, log1p, sqrt, tanh, sigmoid, erf):
    compiled(_op)

# ---- rounding and signs: no gradient, as in PyTorch zeros ----------------------------------------


def _flat(name: str, body: Any, *, accepts_bool: bool = False) -> Unary:
    return Unary(name, body, lambda g: zeros_like(g), accepts_bool=accepts_bool)


sign = _flat(
    "sign",
    lambda a: a.copy() if a.dtype.kind == "b" else backend.namespace(a).sign(a),
    accepts_bool=True,
)
floor = _flat(
    "floor", lambda a: a.copy() if a.dtype.kind in "iu" else backend.namespace(a).floor(a)
)
ceil = _flat("ceil", lambda a: a.copy() if a.dtype.kind in "iu" else backend.namespace(a).ceil(a))
trunc = _flat(
    "trunc", lambda a: a.copy() if a.dtype.kind in "iu" else backend.namespace(a).trunc(a)
)
_round = Unary(
    "round",
    lambda a, *, decimals=0: (
        a.copy() if a.dtype.kind in "iu" else backend.namespace(a).round(a, decimals)
    ),
    lambda g, *, decimals=0: g * 0,
    accepts_bool=False,
)


def round(input: Any, *, decimals: int = 0) -> Any:
    """Rounds to the nearest value with `decimals` places, halves to even."""
    return _round(input, decimals=decimals) if decimals else _round(input)


# ---- selection -----------------------------------------------------------------------------------


_WHERE = Primitive(
    "where",
    where_arrays,
    (
        None,
        # The branch that was not taken gets a true 0, also where g is inf or NaN.
        lambda g, c: where(c, g, _zero(g)),
        lambda g, c: where(c, _zero(g), g),
    ),
    (0,),
)


def zeros_like(a: Any) -> Any:
    """Zeros of the same kind as `a`, an array or a Tensor."""
    return (
        constant(primitive.wrap(backend.namespace(a._array).zeros_like(a._array)))
        if hasattr(a, "_array")
        else (backend.namespace(a).zeros_like(a))
    )


def _zero(g: Any) -> Any:
    """What `where` takes for zeros like `g`."""
    return g.dtype.type(0) if type(g) is np.ndarray else zeros_like(g)


def ones_like(a: Any) -> Any:
    """Ones of the same kind as `a`, an array or a Tensor."""
    return (
        constant(primitive.wrap(backend.namespace(a._array).ones_like(a._array)))
        if hasattr(a, "_array")
        else (backend.namespace(a).ones_like(a))
    )


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`input` where `condition` is true, else `other`; with one argument, `nonzero` as a tuple.

    Args:
        condition: Bool tensor.
        input: Tensor or number.
        other: Tensor or number.

    Raises:
        DtypeError: The condition is not bool.
        ShapeError: The shapes cannot be broadcast.
    """
    if input is None and other is None:
        from .indexing import nonzero

        return nonzero(condition, as_tuple=True)
    if not any(isinstance(x, primitive.Tensor) for x in (condition, input, other)):
        return where_arrays(condition, input, other)
    c = condition if isinstance(condition, primitive.Tensor) else primitive.wrap(condition)
    if c._array.dtype.kind not in "b" and c._array.dtype != np.uint8:
        raise DtypeError(
            f"where: the condition must be bool. Got {describe(c)}. Compare it, for example x > 0."
        )
    if not isinstance(input, primitive.Tensor) and not isinstance(other, primitive.Tensor):
        number = np.asarray(input, dtypes.result_type(input, other).numpy)
        input = constant(primitive.wrap(number)).to(c.device)
    a, b = operands("where", input, other)
    return broadcasting(_WHERE, c, a, b)


def broadcasting(op: Primitive, *inputs: Any) -> Any:
    """Calls `op` and notes the shapes, so that gradients are summed to the inputs' shapes."""
    try:
        out = op(*inputs)
    except ValueError:
        families.raise_broadcast(op.name, *inputs)
        raise
    if out._node is not None:
        out._node.shapes = tuple(t._array.shape for t in inputs)
    return out


def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """A copy of `input` with `value` where `mask` is true; the dtype of `input` is kept.

    Raises:
        DtypeError: The mask is not bool.
    """
    if mask.dtype is not dtypes.bool_:
        raise DtypeError(
            f"masked_fill: the mask must be bool. Got {describe(mask)}. Compare it, e.g. mask == 0."
        )
    if not isinstance(value, primitive.Tensor):
        full = backend.namespace(input._array).full((), value, dtype=input._array.dtype)
        value = constant(primitive.wrap(full))
    elif value._array.ndim:
        raise ShapeError(
            f"masked_fill: the value must be a number or 0-d tensor. Got {describe(value)}. "
            "Use where for a tensor of values."
        )
    return where(mask, cast(value, input._array.dtype), input)


def _clamp_forward(a: Any, *, low: Any, high: Any) -> Any:
    return backend.namespace(a).clip(a, low, high)


def _inside(a: Any, low: Any, high: Any) -> Any:
    inside = a >= low if high is None else (a <= high if low is None else (a >= low) & (a <= high))
    return cast(inside, raw(a).dtype)


_CLAMP = Unary("clamp", _clamp_forward, lambda g, a, *, low, high: g * _inside(a, low, high), (0,))


def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """Limits every element to `[min, max]`; a bound is a number, a tensor or None.

    Raises:
        ArgumentError: Both bounds are missing.
    """
    if min is None and max is None:
        raise ArgumentError("clamp: at least one of min and max is needed. Got neither.")
    if isinstance(min, primitive.Tensor) or isinstance(max, primitive.Tensor):
        out = input if min is None else maximum(input, min)
        return out if max is None else minimum(out, max)
    target = dtypes.result_type(input, *[bound for bound in (min, max) if bound is not None])
    # A bound that overflows a narrow float means no bound, as in PyTorch.
    return _CLAMP(cast(input, target.numpy), low=min, high=max)


def clamp_min(input: Any, min: Any) -> Any:
    """`clamp(input, min=min)`."""
    return clamp(input, min=min)


def clamp_max(input: Any, max: Any) -> Any:
    """`clamp(input, max=max)`."""
    return clamp(input, max=max)


def clone(input: Any, *, memory_format: Any = None) -> Any:
    """A copy with its own memory; gradients pass through."""
    return finish(CLONE, _copied(input._array), (input,), primitive.NO_PARAMS)


def _copied(a: Any) -> Any:
    return a.copy()


CLONE = Primitive("clone", _copied, (lambda g: g,))
absolute, clip, multiply, subtract, negative = abs, clamp, mul, sub, neg
arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
