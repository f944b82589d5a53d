"""Elementwise steps as LLVM instructions, for one number or for several side by side.

Arithmetic is that of NumPy to the last bit. Functions without a rule for their last bit are
polynomials after range reduction, within 2 units in the last place; NaN and infinities come out as
NumPy has them. Kernels of numba have those of float32 in `scalars.py`.

Source: S. L. Moshier, Cephes Mathematical Library, 1992 (expf, logf, tanhf, exp, log, tanh).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

_KINDS: dict[str, Any] = {
    "f": ir.FloatType(),
    "d": ir.DoubleType(),
    "?": ir.IntType(1),
    "i": ir.IntType(32),
    "l": ir.IntType(64),
}
_ORDERS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ROUNDED = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "rint": "rint"}


class _Layout:
    """Where the parts of a float lie.

    Attributes:
        whole: The integers of its size.
        mantissa: Bits of it.
        bias: Of the exponent.
        shifter: Added to a small number, it leaves the nearest whole one in the lowest bits.
        tiny: The smallest number that is not subnormal.
        lowest: Of the exponents of exp whose result is not 0, about.
        log2: ln 2 as a number with few bits, and what it lacks.
    """

    def __init__(
        self, whole: str, mantissa: int, bias: int, lowest: float, log2: tuple[float, float]
    ) -> None:
        self.whole, self.mantissa, self.bias, self.log2 = whole, mantissa, bias, log2
        self.shifter = 1.5 * 2.0**mantissa
        self.tiny = 2.0 ** (1 - bias)
        self.lowest = lowest


_LAYOUTS = {
    "f": _Layout("i", 23, 127, -104.0, (0.693359375, -2.12194440e-4)),
    "d": _Layout("l", 52, 1023, -746.0, (6.93145751953125e-1, 1.42860682030941723212e-6)),
}
_LOG2 = (0.693359375, -2.121944400546905827679e-4)  # likewise, of log in both
_EXP_F = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_EXP_P = (
    1.26177193074810590878e-4,
    3.02994407707441961300e-2,
    9.99999999999999999910e-1,
)
_EXP_Q = (
    3.00198505138664455042e-6,
    2.52448340349684104192e-3,
    2.27265548208155028766e-1,
    2.0,
)
_TANH_F = (
    -5.70498872745e-3,
    2.06390887954e-2,
    -5.37397155531e-2,
    1.33314422036e-1,
    -3.33332819422e-1,
)
_TANH_P = (
    -9.64399179425052238628e-1,
    -9.92877231001918586564e1,
    -1.61468768441708447952e3,
)
_TANH_Q = (
    1.0,
    1.12811678491632931402e2,
    2.23548839060100448583e3,
    4.84406305325125486048e3,
)
_LOG_F = (
    7.0376836292e-2,
    -1.1514610310e-1,
    1.1676998740e-1,
    -1.2420140846e-1,
    1.4249322787e-1,
    -1.6668057665e-1,
    2.0000714765e-1,
    -2.4999993993e-1,
    3.3333331174e-1,
)
_LOG_P = (
    1.01875663804580931796e-4,
    4.97494994976747001425e-1,
    4.70579119878881725854e0,
    1.44989225341610930846e1,
    1.79368678507819816313e1,
    7.70838733755885391666e0,
)
_LOG_Q = (
    1.0,
    1.12873587189167450590e1,
    4.52279145837532221105e1,
    8.29875266912776603211e1,
    7.11544750618563894466e1,
    2.31251620126765340583e1,
)


class Number:
    """A value in a kernel, with Python's operators; numbers beside it take its type."""

    __slots__ = ("kind", "lanes", "value")

    def __init__(self, lanes: Lanes, kind: str, value: Any) -> None:
        self.lanes, self.kind, self.value = lanes, kind, value

    def _with(self, op: str, other: Any, swapped: bool = False) -> Number:
        if not isinstance(other, Number):
            other = self.lanes.constant(other, self.kind)
        pair = (other, self) if swapped else (self, other)
        return self.lanes.arithmetic(op, *pair)

    def __add__(self, other: Any) -> Number:
        return self._with("add", other)

    def __sub__(self, other: Any) -> Number:
        return self._with("sub", other)

    def __rsub__(self, other: Any) -> Number:
        return self._with("sub", other, True)

    def __mul__(self, other: Any) -> Number:
        return self._with("mul", other)

    def __truediv__(self, other: Any) -> Number:
        return self._with("div", other)

    def __rtruediv__(self, other: Any) -> Number:
        return self._with("div", other, True)

    def __lt__(self, other: Any) -> Number:
        return self._compared("<", other)

    def __gt__(self, other: Any) -> Number:
        return self._compared(">", other)

    def is_equal(self, other: Any) -> Number:
        """`==`, which Python's would not give."""
        return self._compared("==", other)

    def _compared(self, order: str, other: Any) -> Number:
        if not isinstance(other, Number):
            other = self.lanes.constant(other, self.kind)
        return self.lanes.compare(order, self, other)


class Lanes:
    """Makes instructions for so many numbers side by side.

    Args:
        builder: LLVM's, at the place where they go.
        count: Numbers; with 1 they are no vectors.
        fused: The processor multiplies and adds in one step.
    """

    def __init__(self, builder: Any, count: int, fused: bool) -> None:
        self.builder, self.count, self._fused = builder, count, fused

    def type_of(self, kind: str) -> Any:
        """LLVM's type of values of that kind."""
        return _KINDS[kind] if self.count == 1 else ir.VectorType(_KINDS[kind], self.count)

    def constant(self, value: Any, kind: str) -> Number:
        """The same number in each lane."""
        plain = bool(value) if kind == "?" else float(value) if kind in "fd" else int(value)
        held = plain if self.count == 1 else [plain] * self.count
        return Number(self, kind, ir.Constant(self.type_of(kind), held))

    def spread(self, kind: str, scalar: Any) -> Number:
        """One value of LLVM in each lane."""
        if self.count == 1:
            return Number(self, kind, scalar)
        none = ir.Constant(self.type_of(kind), ir.Undefined)
        first = self.builder.insert_element(none, scalar, ir.IntType(32)(0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.count), [0] * self.count)
        return Number(self, kind, self.builder.shuffle_vector(first, none, mask))

    def arithmetic(self, op: str, a: Number, b: Number) -> Number:
        """add, sub, mul or div."""
        name = ("f" if a.kind in "fd" else "") + op
        return Number(self, a.kind, getattr(self.builder, name)(a.value, b.value))

    def compare(self, order: str, a: Number, b: Number) -> Number:
        """Bools; NaN differs from everything and has no order."""
        if a.kind not in "fd":
            test = self.builder.icmp_unsigned if a.kind == "?" else self.builder.icmp_signed
        else:
            unequal = order == "!="
            test = self.builder.fcmp_unordered if unequal else self.builder.fcmp_ordered
        return Number(self, "?", test(order, a.value, b.value))

    def choose(self, condition: Number, a: Any, b: Any) -> Number:
        """`a` where the condition holds, else `b`; one of them may be a plain number."""
        kind = a.kind if isinstance(a, Number) else b.kind
        a, b = (x if isinstance(x, Number) else self.constant(x, kind) for x in (a, b))
        return Number(self, kind, self.builder.select(condition.value, a.value, b.value))

    def intrinsic(self, name: str, *args: Number) -> Number:
        """A function of LLVM's own, of floats."""
        kind = args[0].kind
        suffix = ("" if self.count == 1 else f"v{self.count}") + ("f32" if kind == "f" else "f64")
        full, held = f"llvm.{name}.{suffix}", self.type_of(kind)
        module = self.builder.module
        function = module.globals.get(full)
        if function is None:
            function = ir.Function(module, ir.FunctionType(held, [held] * len(args)), full)
        return Number(self, kind, self.builder.call(function, [a.value for a in args]))

    def multiply_add(self, a: Number, b: Any, c: Any) -> Number:
        """a · b + c, rounded once where the processor can."""
        b, c = (x if isinstance(x, Number) else self.constant(x, a.kind) for x in (b, c))
        return self.intrinsic("fma", a, b, c) if self._fused else a * b + c

    def polynomial(self, x: Number, coefficients: Sequence[float]) -> Number:
        """Horner's rule, the highest power first."""
        total: Any = self.constant(coefficients[0], x.kind)
        for c in coefficients[1:]:
            total = self.multiply_add(total, x, c)
        return total

    def bits(self, x: Number, kind: str) -> Number:
        """The same bits as another kind."""
        return Number(self, kind, self.builder.bitcast(x.value, self.type_of(kind)))

    def cast(self, x: Number, kind: str) -> Number:
        """The nearest value of another kind."""
        old, held, builder = x.kind, self.type_of(kind), self.builder
        if kind == "?":
            return self.compare("!=", x, self.constant(0, old))
        if old in "fd":
            change = builder.fpext if kind == "d" else builder.fptrunc
        elif kind in "fd":
            change = builder.uitofp if old == "?" else builder.sitofp
        else:
            change = builder.zext if old == "?" else builder.sext if kind == "l" else builder.trunc
        return Number(self, kind, change(x.value, held))

    def step(self, op: str, args: Sequence[Number], kind: str) -> Number:
        """The result of an elementwise step."""
        if op == "near":
            return args[0]
        if op == "cast":
            return self.cast(args[0], kind)
        if op == "fma":
            return self.multiply_add(*args)
        if op == "where":
            return self.choose(*args)
        if op in _ORDERS:
            return self.compare(_ORDERS[op], *args)
        if op in ("add", "sub", "mul", "div"):
            return self.arithmetic(op, *args)
        if op in _ROUNDED:
            return self.intrinsic(_ROUNDED[op], *args)
        return _STEPS[op](self, *args)


# ---- steps of several instructions ---------------------------------------------------------------


def _negative(lanes: Lanes, x: Number) -> Number:
    if x.kind in "fd":
        return Number(lanes, x.kind, lanes.builder.fneg(x.value))
    return 0 - x


def _absolute(lanes: Lanes, x: Number) -> Number:
    return lanes.intrinsic("fabs", x) if x.kind in "fd" else lanes.choose(x < 0, 0 - x, x)


def _larger(lanes: Lanes, a: Number, b: Number) -> Number:
    return _extreme(lanes, ">", a, b)


def _smaller(lanes: Lanes, a: Number, b: Number) -> Number:
    return _extreme(lanes, "<", a, b)


def _extreme(lanes: Lanes, order: str, a: Number, b: Number) -> Number:
    out = lanes.choose(lanes.compare(order, a, b), a, b)  # of two zeros the second one
    return lanes.choose(lanes.compare("!=", a, a), a, out) if a.kind in "fd" else out


def _sign(lanes: Lanes, x: Number) -> Number:
    out = lanes.choose(x > 0, lanes.constant(1, x.kind), lanes.constant(0, x.kind))
    out = lanes.choose(x < 0, -1, out)
    return lanes.choose(lanes.compare("!=", x, x), x, out)


def _bitwise(name: str) -> Callable[..., Number]:
    def step(lanes: Lanes, a: Number, b: Number) -> Number:
        return Number(lanes, "?", getattr(lanes.builder, name)(a.value, b.value))

    return step


def _not(lanes: Lanes, x: Number) -> Number:
    return Number(lanes, "?", lanes.builder.not_(x.value))


def _two_to(lanes: Lanes, n: Number, kind: str) -> Number:
    """2 to the power of whole numbers that a normal float has."""
    layout = _LAYOUTS[kind]
    shift = lanes.constant(layout.mantissa, layout.whole)
    shifted = lanes.builder.shl((n + layout.bias).value, shift.value)
    return lanes.bits(Number(lanes, layout.whole, shifted), kind)


def _exp(lanes: Lanes, x: Number) -> Number:
    kind, layout = x.kind, _LAYOUTS[x.kind]
    most = 89.0 if kind == "f" else 710.0
    x = lanes.choose(x > most, most, lanes.choose(x < layout.lowest, layout.lowest, x))
    shifted = lanes.multiply_add(x, 1.4426950408889634, layout.shifter)
    n = shifted - layout.shifter
    high, low = layout.log2
    r = lanes.multiply_add(n, -low, lanes.multiply_add(n, -high, x))
    if kind == "f":
        y = lanes.multiply_add(lanes.polynomial(r, _EXP_F), r * r, r) + 1.0
    else:
        square = r * r
        p = r * lanes.polynomial(square, _EXP_P)
        y = p / (lanes.polynomial(square, _EXP_Q) - p)
        y = lanes.multiply_add(y, 2.0, 1.0)
    start = lanes.bits(lanes.constant(layout.shifter, kind), layout.whole)
    whole = lanes.bits(shifted, layout.whole) - start
    one = lanes.constant(1, layout.whole)
    half = Number(lanes, layout.whole, lanes.builder.ashr(whole.value, one.value))
    # In two steps, since the ends of the range have no power of 2 of their own.
    return y * _two_to(lanes, half, kind) * _two_to(lanes, whole - half, kind)


def _tanh(lanes: Lanes, x: Number) -> Number:
    size = lanes.intrinsic("fabs", x)
    square = x * x
    if x.kind == "f":
        near = lanes.polynomial(square, _TANH_F)
    else:
        near = lanes.polynomial(square, _TANH_P) / lanes.polynomial(square, _TANH_Q)
    near = lanes.multiply_add(near * square, x, x)
    most = 10.0 if x.kind == "f" else 22.0
    reach = lanes.choose(size > most, most, size)
    far = 1.0 - 2.0 / (_exp(lanes, reach + reach) + 1.0)
    return lanes.choose(size < 0.625, near, lanes.intrinsic("copysign", far, x))


def _log_of(lanes: Lanes, u: Number, near: Number | None) -> tuple[Number, Number]:
    """ln of positive numbers, and where it is that of `1 + near` rather than of `u`."""
    kind, layout = u.kind, _LAYOUTS[u.kind]
    small = u < layout.tiny
    scaled = lanes.choose(small, u * 2.0**layout.mantissa, u)
    bits = lanes.bits(scaled, layout.whole)
    shift = lanes.constant(layout.mantissa, layout.whole)
    raised = lanes.builder.lshr(bits.value, shift.value)
    e = Number(lanes, layout.whole, raised) - (layout.bias - 1)
    e = lanes.choose(small, e - layout.mantissa, e)
    mask = lanes.constant((1 << layout.mantissa) - 1, layout.whole)
    half = lanes.constant((layout.bias - 1) << layout.mantissa, layout.whole)
    inside = lanes.builder.or_(lanes.builder.and_(bits.value, mask.value), half.value)
    m = lanes.bits(Number(lanes, layout.whole, inside), kind)
    below = m < 0.70710678118654752440
    e = lanes.choose(below, e - 1, e)
    f = lanes.choose(below, m + m, m) - 1.0
    here = e.is_equal(0)
    if near is not None:
        f = lanes.choose(here, near, f)
    n, square = lanes.cast(e, kind), f * f
    if kind == "f":
        tail = lanes.polynomial(f, _LOG_F)
    else:
        tail = lanes.polynomial(f, _LOG_P) / lanes.polynomial(f, _LOG_Q)
    tail = tail * (f * square)
    tail = lanes.multiply_add(n, _LOG2[1], tail)
    tail = lanes.multiply_add(square, -0.5, tail)
    return lanes.multiply_add(n, _LOG2[0], f + tail), here


def _at_ends(lanes: Lanes, u: Number, y: Number) -> Number:
    """`y`, a logarithm of `u`, with the values that formulas do not give."""
    infinity, zero = float("inf"), lanes.constant(0, u.kind)
    y = lanes.choose(u.is_equal(0), -infinity, y)
    y = lanes.choose(u.is_equal(infinity), infinity, y)
    unknown = Number(lanes, "?", lanes.builder.fcmp_unordered("<", u.value, zero.value))
    return lanes.choose(unknown, float("nan"), y)


def _log(lanes: Lanes, x: Number) -> Number:
    return _at_ends(lanes, x, _log_of(lanes, x, None)[0])


def _log1p(lanes: Lanes, x: Number) -> Number:
    u = x + 1.0
    y, here = _log_of(lanes, u, x)
    lost = lanes.choose(here, 0.0, (x - (u - 1.0)) / u)
    return _at_ends(lanes, u, y + lost)


_STEPS: dict[str, Callable[..., Number]] = {
    "neg": _negative,
    "abs": _absolute,
    "maximum": _larger,
    "minimum": _smaller,
    "sign": _sign,
    "sqrt": lambda lanes, x: lanes.intrinsic("sqrt", x),
    "and": _bitwise("and_"),
    "or": _bitwise("or_"),
    "xor": _bitwise("xor"),
    "not": _not,
    "exp": _exp,
    "tanh": _tanh,
    "log": _log,
    "log1p": _log1p,
}
