"""What elementwise bodies compute, found by calling them with arrays that stand for values.

A body or a rule says with NumPy's functions and operators what becomes of arrays. Given a `Symbol`
in place of an array, the same text builds an expression instead of numbers, so that nothing has to
say again what an operation means. What is not elementwise raises `Opaque`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.mode import quiet

# NumPy's functions, and how a kernel names them; each element of the result depends on one of each
# operand. Those that stand for several are made of these below.
_UFUNCS = {
    np.add: "add",
    np.subtract: "sub",
    np.multiply: "mul",
    np.true_divide: "div",
    np.negative: "neg",
    np.absolute: "abs",
    np.sqrt: "sqrt",
    np.exp: "exp",
    np.log: "log",
    np.log1p: "log1p",
    np.tanh: "tanh",
    np.maximum: "maximum",
    np.minimum: "minimum",
    np.floor: "floor",
    np.ceil: "ceil",
    np.trunc: "trunc",
    np.rint: "rint",
    np.sign: "sign",
    np.equal: "eq",
    np.not_equal: "ne",
    np.less: "lt",
    np.less_equal: "le",
    np.greater: "gt",
    np.greater_equal: "ge",
    np.logical_and: "and",
    np.logical_or: "or",
    np.logical_xor: "xor",
    np.logical_not: "not",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
    np.bitwise_xor: "xor",
    np.invert: "not",
}
_LOGICAL = frozenset(("and", "or", "xor", "not"))
_ONLY_FLOATS = frozenset("exp log log1p tanh sqrt floor ceil trunc rint sign".split())
_DTYPES = frozenset("fd?il")
_FLOATS = frozenset("fd")
# Whose results are rounded otherwise than NumPy's, in the last place or two.
APPROXIMATE = frozenset(("exp", "log", "log1p", "tanh", "near"))


class Opaque(Exception):
    """A body that is more than elementwise, or uses what no kernel has."""


class Expression:
    """One elementwise step.

    Attributes:
        op: "input", "constant", "cast", "where", "broadcast", "reshape" (which adds or removes axes
            of length 1), "near" (what NumPy may round otherwise), "fma" (product and sum, rounded
            once where the processor can) or a name from `_UFUNCS`.
        args: Its operands.
        dtype: The type character of the result.
        value: Of an input its slot, of a constant its number.
        shape: Of the result; () for constants.
    """

    __slots__ = ("args", "dtype", "op", "shape", "value")

    def __init__(
        self, op: str, args: tuple[Expression, ...], dtype: str, shape: Any, value: Any = None
    ) -> None:
        self.op, self.args, self.dtype, self.shape, self.value = op, args, dtype, shape, value


def constant(value: Any, dtype: np.dtype[Any]) -> Expression:
    """A number of that dtype."""
    if dtype.char not in _DTYPES:
        raise Opaque(f"constants of {dtype}")
    return Expression("constant", (), dtype.char, (), dtype.type(value))


def source(slot: int, array: Any) -> Expression:
    """The value of a slot that was `array`."""
    if array.dtype.char not in _DTYPES:
        raise Opaque(f"arrays of {array.dtype}")
    return Expression("input", (), array.dtype.char, array.shape, slot)


def _cast(x: Expression, dtype: np.dtype[Any]) -> Expression:
    char = dtype.char
    if x.dtype == char:
        return x
    if char not in _DTYPES or (x.dtype in _FLOATS and char in "il"):
        raise Opaque(f"casts from {x.dtype} to {dtype}")
    if x.op == "constant":
        return constant(x.value, dtype)
    return Expression("cast", (x,), char, x.shape)


def applied(op: str, dtype: np.dtype[Any], *args: Expression) -> Expression:
    """The step `op` on operands whose shapes are broadcast."""
    if dtype.char not in _DTYPES:
        raise Opaque(f"results of {dtype}")
    shape = np.broadcast_shapes(*[x.shape for x in args])
    return Expression(op, args, dtype.char, shape)


class Symbol(np.ndarray):
    """Stands for an array while a body runs; it has its shape and dtype, and no numbers.

    Attributes:
        expression: What it is.
    """

    expression: Expression | None

    def __array_finalize__(self, source: Any) -> None:
        self.expression = None  # what is made by ways that are not seen here is nothing

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        target = options.pop("out", None)
        if method != "__call__" or options:
            raise Opaque(f"{ufunc.__name__}.{method}")
        out = symbol(_called(ufunc, inputs))
        if target is None:
            return out
        (into,) = target
        if not isinstance(into, Symbol) or (into.shape, into.dtype) != (out.shape, out.dtype):
            raise Opaque("a result is written into another array")
        into.expression = out.expression
        return into

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = _FUNCTIONS.get(function)
        if known is None:
            raise Opaque(function.__name__)
        return known(*args, **kwargs)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """As of an array; the result may be `self`."""
        return symbol(_cast(_expression(self), np.dtype(dtype)))

    def copy(self, *args: Any) -> Any:
        """As of an array."""
        return symbol(_expression(self))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Only axes of length 1 may come or go."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        made = np.ndarray.reshape(np.asarray(self), wanted).shape
        return symbol(reshaped(_expression(self), made))


def _refuse(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **options: Any) -> Any:
        raise Opaque(name)

    return method


for _name in (
    "__getitem__ __setitem__ __iter__ __bool__ __float__ __int__ __index__ __complex__ item "
    "tolist tobytes"
).split():
    setattr(Symbol, _name, _refuse(_name))


def symbol(expression: Expression) -> Symbol:
    """A Symbol for an expression."""
    dtype = np.dtype(expression.dtype)
    blank = np.full((), math.nan if dtype.kind == "f" else 1, dtype)
    made = np.broadcast_to(blank, expression.shape).view(Symbol)
    made.expression = expression
    return made


def _expression(x: Any) -> Expression:
    """What an operand stands for."""
    if isinstance(x, Symbol):
        if x.expression is None:
            raise Opaque("a way to an array that is not seen")
        return x.expression
    if isinstance(x, np.generic) or (type(x) is np.ndarray and x.ndim == 0):
        if x != x:
            raise Opaque("a number that is NaN")
        return constant(x, x.dtype)
    raise Opaque(f"an operand of {type(x).__name__}")


def _called(ufunc: Any, inputs: Sequence[Any]) -> Expression:
    """A ufunc on symbols and numbers, with NumPy's rules for dtypes."""
    numbers = (int, float)
    plain = [type(x) in numbers for x in inputs]
    given = [
        None if p else _expression(np.bool_(x) if type(x) is bool else x)
        for x, p in zip(inputs, plain, strict=True)
    ]
    kinds = [
        type(x) if e is None else np.dtype(e.dtype) for x, e in zip(inputs, given, strict=True)
    ]
    *loop, result = ufunc.resolve_dtypes((*kinds, None))
    args = [
        constant(x, d) if e is None else _cast(e, d)
        for x, e, d in zip(inputs, given, loop, strict=True)
    ]
    return _built(ufunc, args, result)


def _built(ufunc: Any, args: list[Expression], result: np.dtype[Any]) -> Expression:
    name, (a, *rest) = _UFUNCS.get(ufunc), args
    if name == "add" and result.char == "?":
        name = "or"
    if name in _LOGICAL and any(x.dtype != "?" for x in args):
        raise Opaque(f"{name} of numbers")
    if name == "div" and a.dtype not in _FLOATS:
        raise Opaque("division of whole numbers")
    if name is not None:
        if name in _ONLY_FLOATS:
            _need_float(a)
        return applied(name, result, *args)
    if ufunc is np.positive:
        return a
    if ufunc is np.square:
        return applied("mul", result, a, a)
    if ufunc is np.reciprocal:
        _need_float(a)
        return applied("div", result, constant(1, result), a)
    if ufunc is np.power and rest[0].op == "constant":
        return _power(a, float(rest[0].value), result)
    raise Opaque(ufunc.__name__)


def _need_float(x: Expression) -> None:
    if x.dtype not in _FLOATS:
        raise Opaque("whole numbers")


def _power(a: Expression, exponent: float, dtype: np.dtype[Any]) -> Expression:
    """Powers that products and roots give within two units in the last place."""
    _need_float(a)

    def make(op: str, *args: Expression) -> Expression:
        return applied(op, dtype, *args)

    size = abs(exponent)
    if size in (2, 3, 4):
        square = make("mul", a, a)
        out = square if size == 2 else make("mul", square, a if size == 3 else square)
    elif size in (0.5, 1.5):
        # -0 has the powers of +0, and -inf those of +inf.
        zero, infinity = constant(0, dtype), constant(math.inf, dtype)
        lowest = applied("eq", np.dtype(bool), a, constant(-math.inf, dtype))
        x = make("where", lowest, infinity, make("add", a, zero))
        out = make("sqrt", x) if size == 0.5 else make("mul", x, make("sqrt", x))
    else:
        raise Opaque(f"powers of {exponent}")
    return make("near", out if exponent > 0 else make("div", constant(1, dtype), out))


# ---- functions of NumPy that are no ufuncs -------------------------------------------------------


def _where(condition: Any, a: Any, b: Any) -> Symbol:
    c = _expression(condition)
    if c.dtype != "?":
        raise Opaque("a condition of numbers")
    kinds = [x if type(x) in (int, float) else np.dtype(_expression(x).dtype) for x in (a, b)]
    dtype = np.result_type(*kinds)
    args = [
        constant(x, dtype) if type(x) in (int, float) else _cast(_expression(x), dtype)
        for x in (a, b)
    ]
    return symbol(applied("where", dtype, c, *args))


def _clip(a: Any, low: Any = None, high: Any = None) -> Symbol:
    dtype = np.dtype(_expression(a).dtype)
    for bound in (low, high):
        if bound is not None and type(bound) not in (int, float):
            raise Opaque("clip by arrays")
        if dtype.kind != "f" and type(bound) is float:
            raise Opaque("clip of whole numbers by others")
    low = low if low is None else dtype.type(low)
    high = high if high is None else dtype.type(high)
    if high is None:
        out: Symbol = np.maximum(a, low)
    elif low is None:
        out = np.minimum(a, high)
    else:  # of two zeros NumPy takes the bound, but with two bounds the number
        out = np.minimum(high, np.maximum(low, a))
    return out


def _filled(number: int) -> Callable[..., Symbol]:
    def like(a: Any) -> Symbol:
        x = constant(number, a.dtype)
        return symbol(Expression("broadcast", (x,), x.dtype, a.shape))

    return like


def _broadcast_to(a: Any, shape: Any) -> Symbol:
    x = _expression(a)
    return symbol(Expression("broadcast", (x,), x.dtype, tuple(shape)))


def reshaped(x: Expression, shape: tuple[int, ...]) -> Expression:
    """`x` in a shape that differs by axes of length 1."""
    if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
        raise Opaque("reshape")
    return Expression("reshape", (x,), x.dtype, shape)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.clip: _clip,
    np.zeros_like: _filled(0),
    np.ones_like: _filled(1),
    np.broadcast_to: _broadcast_to,
}


def traced(body: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Expression:
    """What `body(*args, **kwargs)` computes; there are Symbols among the arguments.

    Raises:
        Opaque: It is not elementwise.
    """
    try:
        with quiet():
            out = body(*args, **kwargs)
    except Opaque:
        raise
    except Exception as error:  # a body may do anything with what is no array
        raise Opaque(str(error)) from error
    return _expression(out)
