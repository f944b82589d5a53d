"""Comparisons, logic and bits: elementwise operations without gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..errors import DtypeError, describe
from . import primitive
from .families import Comparison, nondiff, operands
from .primitive import raw
from .recording import as_a_whole

eq = Comparison("eq", "equal")
ne = Comparison("ne", "not_equal")
lt = Comparison("lt", "less")
le = Comparison("le", "less_equal")
gt = Comparison("gt", "greater")
ge = Comparison("ge", "greater_equal")
logical_and = Comparison("logical_and", "logical_and")
logical_or = Comparison("logical_or", "logical_or")
logical_xor = Comparison("logical_xor", "logical_xor")


class _Bitwise(Comparison):
    """Bitwise operations of integers and bools.

    Raises:
        DtypeError: An operand is floating.
    """

    def __call__(self, a: Any, b: Any) -> Any:
        result = super().__call__
        for x in (a, b):
            array = raw(x)
            if isinstance(x, float) or getattr(array, "dtype", np.dtype(int)).kind not in "iub":
                raise DtypeError(
                    f"{self.name}: operands must be integers or bool. "
                    f"Got {describe(a)} and {describe(b)}. Convert with .long() or .bool()."
                )
        return result(a, b)


bitwise_and = _Bitwise("bitwise_and", "bitwise_and")
bitwise_or = _Bitwise("bitwise_or", "bitwise_or")
bitwise_xor = _Bitwise("bitwise_xor", "bitwise_xor")
bitwise_left_shift = _Bitwise("bitwise_left_shift", "left_shift")
bitwise_right_shift = _Bitwise("bitwise_right_shift", "right_shift")
logical_not = nondiff("logical_not", lambda a: backend.namespace(a).logical_not(a))
isnan = nondiff("isnan", lambda a: a != a)
isinf = nondiff("isinf", lambda a: backend.namespace(a).isinf(a))
isfinite = nondiff("isfinite", lambda a: backend.namespace(a).isfinite(a))
signbit = nondiff("signbit", lambda a: backend.namespace(a).signbit(a))


@as_a_whole()
def bitwise_not(input: Any) -> Any:
    """Flips every bit; on bool, `logical_not`.

    Raises:
        DtypeError: `input` is floating.
    """
    array = raw(input)
    if array.dtype.kind not in "iub":
        raise DtypeError(
            f"bitwise_not: the operand must be integer or bool. Got {describe(input)}. "
            "Use logical_not for floats."
        )
    return primitive.wrap(~array)


@as_a_whole()
def isclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """`|input - other| <= atol + rtol * |other|`, elementwise."""
    if raw(input).dtype != raw(other).dtype:
        raise DtypeError(
            f"isclose: both operands must have one dtype. Got {describe(input)} and "
            f"{describe(other)}. Convert one with .to(dtype)."
        )
    a, b = operands("isclose", input, other)
    xp = backend.namespace(a._array)
    return primitive.wrap(xp.isclose(a._array, b._array, rtol=rtol, atol=atol, equal_nan=equal_nan))


def allclose(
    input: Any, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> bool:
    """True if every element is close; waits for the device."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


def equal(input: Any, other: Any) -> bool:
    """True if shapes and all elements are equal; waits for the device."""
    a, b = input._array, other._array
    primitive.check_same_device("equal", [input, other])
    return a.shape == b.shape and bool((a == b).all())
