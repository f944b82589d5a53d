"""Rows of elementwise and special functions."""

from __future__ import annotations

from typing import Any

from op_table import NO_GRAD, ONE, TWO, Row


def _one(name: str, **options: Any) -> Row:
    return Row(name, lambda m, x: getattr(m, name)(x), ONE, **options)


def _two(name: str, **options: Any) -> Row:
    return Row(name, lambda m, a, b: getattr(m, name)(a, b), TWO, **options)


def _row(name: str, call: Any, shapes: Any = ONE, **options: Any) -> Row:
    return Row(name, call, shapes, **options)


def _special(name: str, **options: Any) -> Row:
    return _row(f"special.{name}", lambda m, x: getattr(m.special, name)(x), **options)


FLAT = {"second": "constant"}
WAIT = {"waits": "how far left the arguments reach decides about the terms"}

ROWS = [
    _one("erfc"),
    _one("erfinv", low=-0.9, high=0.9),
    _one("lgamma", low=0.2, high=5.0, integers=True),
    _row("lgamma left", lambda m, x: m.lgamma(x), low=-1.9, high=-1.1),
    _one("digamma", low=0.2, high=5.0),
    _row("digamma left", lambda m, x: x.digamma(), low=-1.9, high=-1.1),
    _row("polygamma", lambda m, x: m.polygamma(1, x), low=0.5, high=4.0, exempt=WAIT),
    _row("polygamma 3", lambda m, x: x.polygamma(3), low=1.0, high=4.0, exempt=WAIT),
    _row("polygamma 0", lambda m, x: m.polygamma(0, x), low=0.5, high=4.0),
    _row("mvlgamma", lambda m, x: m.mvlgamma(x, 3), low=1.5, high=5.0),
    _one("i0"),
    _one("sinc"),
    _one("logit", low=0.1, high=0.9),
    _row("logit eps", lambda m, x: m.logit(x, 0.2), low=0.0, high=1.0),
    _one("deg2rad", integers=True),
    _one("rad2deg", integers=True),
    _row("positive", lambda m, x: m.positive(x) * 1, integers=True),
    _one("fix", exempt=FLAT),
    _one("arccosh", low=1.3, high=3.0),
    _one("arcsinh"),
    _one("arctanh", low=-0.8, high=0.8),
    *[_one(name, exempt=NO_GRAD) for name in ("isneginf", "isposinf")],
    _two("logaddexp2"),
    _two("hypot", low=0.3),
    _row("copysign", lambda m, a, b: m.copysign(a, b.detach()), TWO, exempt=FLAT),
    _two("fmax"),
    _two("fmin"),
    _two("xlogy", low=0.3),
    _row("xlogy number", lambda m, x: m.xlogy(x, 2.5)),
    _two("ldexp", high=1.0),
    _two("float_power", low=0.5, exempt={"float dtypes": "float64 by definition"}),
    _row(
        "float_power number", lambda m, x: m.float_power(x, 3), exempt={"float dtypes": "float64"}
    ),
    _two("rsub", integers=True),
    _row("rsub alpha", lambda m, a, b: m.rsub(a, b, alpha=2), TWO),
    _row("frexp", lambda m, x: m.frexp(x)[0], low=0.3),
    _row("frexp exponent", lambda m, x: m.frexp(x)[1], exempt=NO_GRAD),
    _row(
        "heaviside",
        lambda m, a, b: m.heaviside(m.round(a.detach()), b.detach()),
        TWO,
        exempt=NO_GRAD,
    ),
    _row(
        "nextafter",
        lambda m, a, b: m.nextafter(a.detach(), b.detach()),
        TWO,
        exempt={**NO_GRAD, "float dtypes": "the step depends on the dtype"},
    ),
    *[
        _row(
            name,
            lambda m, a, b, name=name: getattr(m, name)(a.detach().long(), b.detach().long()),
            TWO,
            low=1.0,
            high=40.0,
            exempt=NO_GRAD,
        )
        for name in ("gcd", "lcm")
    ],
    _row("isin", lambda m, a, b: m.isin(m.round(a), m.round(b)), TWO, exempt=NO_GRAD),
    *[_two(n, exempt=NO_GRAD) for n in ("greater", "greater_equal", "less", "less_equal")],
    _two("not_equal", exempt=NO_GRAD),
    *[
        _special(n)
        for n in ("entr", "erfcx", "i0e", "i1", "i1e", "log_ndtr", "ndtr", "expit", "psi")
        if n not in ("entr", "psi")
    ],
    _special("entr", low=0.1),
    _special("psi", low=0.3),
    _special("gammaln", low=0.3),
    _special("ndtri", low=0.1, high=0.9),
    _row("special.xlog1py", lambda m, a, b: m.special.xlog1py(a, b), TWO, low=0.2),
    _row(
        "special.zeta",
        lambda m, a, b: m.special.zeta(a.detach(), b),
        (((3, 4), (3, 4)), ((3, 4), (4,)), ((), ())),
        low=1.5,
        high=4.0,
        exempt={"gradient": "only of the second operand", "second": "the same"},
    ),
]
