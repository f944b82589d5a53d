"""Element types, and the rules by which they meet.

The names and the promotion rules are PyTorch's: tensors with dimensions outrank 0-d tensors, which
outrank Python numbers, and a lower rank changes the result only by its category (bool < integer <
floating < complex).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .errors import DtypeError

_BOOL, _INT, _FLOAT, _COMPLEX = range(4)


class dtype:
    """An element type: `minitorch.float32` and its siblings.

    Attributes:
        numpy: The NumPy dtype of the arrays that hold it.
        itemsize: Bytes of one element.
        is_floating_point: True for float16, bfloat16, float32 and float64.
        is_complex: True for complex64 and complex128.
    """

    __slots__ = ("category", "is_complex", "is_floating_point", "itemsize", "name", "numpy")

    def __init__(self, name: str, numpy: Any, category: int) -> None:
        self.name = name
        self.numpy = np.dtype(numpy)
        self.category = category
        self.itemsize = self.numpy.itemsize
        self.is_floating_point = category == _FLOAT
        self.is_complex = category == _COMPLEX

    @property
    def is_signed(self) -> bool:
        """True for every dtype that holds negative numbers."""
        return self.name not in ("bool", "uint8")

    def __repr__(self) -> str:
        return f"minitorch.{self.name}"

    def __reduce__(self) -> str:
        return self.name if self.name != "bool" else "bool_"


float16 = dtype("float16", np.float16, _FLOAT)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16, _FLOAT)
float32 = dtype("float32", np.float32, _FLOAT)
float64 = dtype("float64", np.float64, _FLOAT)
complex64 = dtype("complex64", np.complex64, _COMPLEX)
complex128 = dtype("complex128", np.complex128, _COMPLEX)
uint8 = dtype("uint8", np.uint8, _INT)
int8 = dtype("int8", np.int8, _INT)
int16 = dtype("int16", np.int16, _INT)
int32 = dtype("int32", np.int32, _INT)
int64 = dtype("int64", np.int64, _INT)
bool_ = dtype("bool", np.bool_, _BOOL)

ALL = (
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
    uint8,
    int8,
    int16,
    int32,
    int64,
    bool_,
)
HALF = frozenset((float16.numpy, bfloat16.numpy))
_BY_NUMPY = {d.numpy: d for d in ALL}
_PYTHON = {bool: bool_, int: int64, float: float32, complex: complex64}
_COMPLEX_OF = {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}

_default = float32


def get_default_dtype() -> dtype:
    """The floating dtype of new tensors made from Python numbers."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Sets the floating dtype of new tensors made from Python numbers.

    Raises:
        DtypeError: `d` is not a floating dtype.
    """
    global _default
    d = of(d)
    if not d.is_floating_point:
        raise DtypeError(f"set_default_dtype: the dtype must be floating. Got {d}. Use float32.")
    _default = d


def of(value: Any) -> dtype:
    """The minitorch dtype that `value` names.

    Args:
        value: A minitorch dtype, a NumPy dtype or scalar type, or `bool`, `int`, `float`.

    Raises:
        DtypeError: There is no such dtype here.
    """
    if isinstance(value, dtype):
        return value
    if value is float:
        return _default
    if value in _PYTHON:
        return _PYTHON[value]
    try:
        return _BY_NUMPY[np.dtype(value)]
    except (KeyError, TypeError):
        names = ", ".join(d.name for d in ALL)
        raise DtypeError(
            f"dtype: {value!r} is not an element type of tensors. Use one of {names}."
        ) from None


def promote_types(a: dtype, b: dtype) -> dtype:
    """The smallest dtype that holds the values of both, by PyTorch's rules."""
    if a is b:
        return a
    if a.category != b.category:
        low, high = (a, b) if a.category < b.category else (b, a)
        if high.is_complex and low is float64:
            return complex128
        return high
    if a.category == _FLOAT and {a, b} == {float16, bfloat16}:
        return float32
    return _BY_NUMPY[np.promote_types(a.numpy, b.numpy)]


def result_type(*operands: Any) -> dtype:
    """The dtype in which an operation on `operands` is computed.

    Args:
        operands: Tensors, arrays and Python numbers.

    Returns:
        PyTorch's promoted dtype: 0-d tensors and numbers count only by their category.
    """
    ranked: list[dtype | None] = [None, None, None]
    for operand in operands:
        array = getattr(operand, "_array", operand)
        if hasattr(array, "dtype"):
            rank, d = (0 if array.ndim else 1), of(array.dtype)
        else:
            rank, d = 2, _of_number(operand)
        previous = ranked[rank]
        ranked[rank] = d if previous is None else promote_types(previous, d)
    result: dtype | None = None
    for d_or_none in ranked:
        if d_or_none is None:
            continue
        if result is None:
            result = d_or_none
        elif d_or_none.category > result.category:
            result = _raised(result, d_or_none)
    assert result is not None
    return result


def _raised(result: dtype, higher: dtype) -> dtype:
    """`higher`, or the complex dtype as wide as the floating `result`."""
    if higher.is_complex and result.is_floating_point:
        return promote_types(_COMPLEX_OF[result], complex64)
    return higher


def _of_number(value: Any) -> dtype:
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return _default
    if isinstance(value, complex):
        return _COMPLEX_OF[_default]
    raise DtypeError(
        f"operand: expected a tensor or a number. Got {type(value).__name__}. "
        "Convert it with minitorch.tensor(...)."
    )


def can_cast(source: dtype, target: dtype) -> bool:
    """True if PyTorch lets an in-place result of `source` be written into `target`."""
    return source.category <= target.category


class finfo:
    """The numerical limits of a floating dtype: `bits, eps, max, min, tiny, resolution`."""

    def __init__(self, d: dtype | None = None) -> None:
        self.dtype = _default if d is None else of(d)
        if not self.dtype.is_floating_point:
            raise DtypeError(
                f"finfo: the dtype must be floating. Got {self.dtype}. Use iinfo for integers."
            )
        info = ml_dtypes.finfo(self.dtype.numpy)
        self.bits = int(info.bits)
        self.eps = float(info.eps)
        self.max = float(info.max)
        self.min = float(info.min)
        self.tiny = self.smallest_normal = float(info.smallest_normal)
        self.resolution = float(info.resolution)

    def __repr__(self) -> str:
        return f"finfo(eps={self.eps}, min={self.min}, max={self.max}, dtype={self.dtype.name})"


class iinfo:
    """The limits of an integer dtype: `bits, max, min`."""

    def __init__(self, d: dtype) -> None:
        self.dtype = of(d)
        if self.dtype.category != _INT:
            raise DtypeError(
                f"iinfo: the dtype must be an integer. Got {self.dtype}. Use finfo for floats."
            )
        info = np.iinfo(self.dtype.numpy)
        self.bits, self.min, self.max = int(info.bits), int(info.min), int(info.max)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype.name})"
