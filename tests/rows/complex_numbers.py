"""Complex tensors, made of two real ones and taken apart again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from op_table import TWO, Row

HALF = {"float dtypes": "complex numbers have no half parts here"}
PAIR = TWO[:1] + TWO[4:6]


def _row(name: str, call: Callable[..., Any], shapes: Any = PAIR, **options: Any) -> Row:
    """A row whose `call(m, z)` gets a complex tensor and gives a real or complex one."""

    def whole(m: Any, a: Any, b: Any) -> Any:
        y = call(m, m.complex(a, b))
        return m.view_as_real(m.resolve_conj(y)) if y.is_complex() else y

    return Row(name, whole, shapes, exempt=HALF | options.pop("exempt", {}), **options)


ROWS = [
    _row("complex", lambda m, z: z, TWO),
    Row(
        "polar",
        lambda m, a, b: m.view_as_real(m.polar(a, b)),
        TWO,
        low=0.3,
        exempt=HALF,
    ),
    _row("real", lambda m, z: m.real(z)),
    _row("imag", lambda m, z: m.imag(z)),
    _row(".real", lambda m, z: z.real * z.imag),
    _row("angle", lambda m, z: m.angle(z), low=0.3),
    Row("angle real", lambda m, x: m.angle(x), (((3, 4),),), exempt={"second": "constant"}),
    _row("conj", lambda m, z: m.conj(z) * z),
    _row("conj_physical", lambda m, z: m.conj_physical(z) * z),
    _row("resolve_conj", lambda m, z: m.resolve_conj(z)),
    _row("adjoint", lambda m, z: m.adjoint(z), (((3, 4), (3, 4)), ((2, 3, 4), (2, 3, 4)))),
    _row(".H", lambda m, z: z.H, (((3, 4), (3, 4)),)),
    _row(".mH", lambda m, z: z.mH, (((2, 3, 4), (2, 3, 4)),)),
    _row("sgn", lambda m, z: m.sgn(z), low=0.3),
    Row(
        "sgn real",
        lambda m, x: m.sgn(x),
        (((3, 4),),),
        exempt={"second": "constant", "parity": "torch gives a zero tensor without memory"},
    ),
    _row("abs complex", lambda m, z: m.abs(z), low=0.3),
    _row("view_as_real", lambda m, z: m.view_as_real(z) ** 2),
    Row(
        "view_as_complex",
        lambda m, x: m.view_as_real(m.view_as_complex(x * 1) ** 2),
        (((3, 2),), ((2,),), ((2, 3, 2),)),
        exempt=HALF | {"strided": "the parts must lie side by side, or it is a copy"},
    ),
    Row(
        "isreal",
        lambda m, a, b: m.isreal(m.complex(a, b * 0)),
        PAIR,
        exempt=HALF | {"gradient": "no gradient", "second": "no gradient"},
    ),
    _row("norm complex", lambda m, z: m.norm(z, dim=-1), (((3, 4), (3, 4)),)),
    _row("matmul complex", lambda m, z: z @ z.mT, (((3, 4), (3, 4)),)),
]
