"""Universal functions, and the operators made of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from . import indexing
from .arrays import ndarray
from .boundary import Array, check_dtype, check_scalar_promotion, is_scalar, operand, quietly, wrap

_REDUCING = {"add": "sum", "multiply": "prod"}
_ACCUMULATING = {"add": "cumsum", "multiply": "cumprod"}


class ufunc:
    """An elementwise function of device arrays and scalars.

    Args:
        host: NumPy's function of the same name.
        name: The name in CuPy's namespace.
    """

    def __init__(self, host: np.ufunc, name: str) -> None:
        self._host = host
        self.__name__ = name
        self.name = f"cupy_{host.__name__}"
        self.nin, self.nout, self.nargs = host.nin, host.nout, host.nargs

    def __repr__(self) -> str:
        return f"<ufunc {self.name!r}>"

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        dtype: Any = None,
        casting: Any = "same_kind",
        **rest: Any,
    ) -> Any:
        if rest:
            raise TypeError(f"Wrong arguments {rest}")
        if not self.nin <= len(args) <= self.nargs:
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or "
                f"{self.nargs} (with outputs), but given {len(args)}."
            )
        outputs = args[self.nin :]
        if out is not None:
            if outputs:
                raise ValueError("Cannot specify 'out' as both a positional and keyword argument")
            outputs = out if isinstance(out, tuple) else (out,)
        inputs = [operand(value) for value in args[: self.nin]]
        check_scalar_promotion(inputs)
        options: dict[str, Any] = {"casting": casting}
        if dtype is not None:
            options["dtype"] = check_dtype(dtype)
        if outputs:
            options["out"] = tuple(None if one is None else _output(one) for one in outputs)
        result = quietly(self._host, *inputs, **options)
        return wrap(result, [one for one in outputs if one is not None])

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        """Reduces an axis: for add and multiply."""
        method = self._method(_REDUCING, "reduce", array)
        return method(axis=axis, dtype=dtype, out=out, keepdims=keepdims)

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        """Running results along an axis: for add and multiply."""
        return self._method(_ACCUMULATING, "accumulate", array)(axis=axis, dtype=dtype, out=out)

    def _method(self, table: dict[str, str], what: str, array: Any) -> Callable[..., Any]:
        if self._host.__name__ not in table:
            raise NotImplementedError(f"`{self.name}.{what}` is not supported yet")
        if not isinstance(array, ndarray):
            raise TypeError(f"Unsupported type {type(array)}")
        return getattr(array, table[self._host.__name__])

    def reduceat(self, array: Any, indices: Any, axis: int = 0, **options: Any) -> Any:
        """Not offered here: CuPy has it for add only."""
        raise NotImplementedError(f"`{self.name}.reduceat` is not supported yet")

    def outer(self, A: Any, B: Any, **options: Any) -> Any:
        """The function of all pairs of elements."""
        operand(A), operand(B)
        left = A.reshape(A.shape + (1,) * B.ndim)
        return self(left, B.reshape((1,) * A.ndim + B.shape), **options)

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        """Applies the function in place at indices, repeated places included."""
        if self.__name__ not in indexing.SCATTERS:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        indexing.scatter(self.__name__, a, indices, b)


def _output(value: Any) -> np.ndarray:
    if not isinstance(value, Array):
        raise TypeError(f"Unsupported type {type(value)}")
    return operand(value)


def _defers(left: Any, right: Any) -> bool:
    """True when CuPy lets the right operand have its turn."""
    try:
        protocol = right.__array_ufunc__
    except AttributeError:
        return bool(left.__array_priority__ < getattr(right, "__array_priority__", 0))
    return protocol is None


def _forward(name: str) -> Callable[[Any, Any], Any]:
    ours, host = ufunc(getattr(np, name), name), getattr(np, name)

    def method(self: Any, other: Any) -> Any:
        if isinstance(other, ndarray) or is_scalar(other):
            return ours(self, other)
        return NotImplemented if _defers(self, other) else host(self, other)

    return method


def _reflected(name: str) -> Callable[[Any, Any], Any]:
    ours, host = ufunc(getattr(np, name), name), getattr(np, name)

    def method(self: Any, other: Any) -> Any:
        return ours(other, self) if is_scalar(other) else host(other, self)

    return method


def _inplace(name: str) -> Callable[[Any, Any], Any]:
    ours = ufunc(getattr(np, name), name)

    def method(self: Any, other: Any) -> Any:
        return ours(self, other, self)

    return method


def _unary(name: str) -> Callable[[Any], Any]:
    ours = ufunc(getattr(np, name), name)

    def method(self: Any) -> Any:
        return ours(self)

    return method


def _matmul(self: Any, other: Any) -> Any:
    if not isinstance(other, ndarray) and _defers(self, other):
        return NotImplemented
    return wrap(quietly(operator.matmul, operand(self), operand(other)))


_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
}
_COMPARING = {
    "lt": "less",
    "le": "less_equal",
    "eq": "equal",
    "ne": "not_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def _install() -> None:
    for python, name in _BINARY.items():
        setattr(ndarray, f"__{python}__", _forward(name))
        setattr(ndarray, f"__r{python}__", _reflected(name))
        setattr(ndarray, f"__i{python}__", _inplace(name))
    for python, name in _COMPARING.items():
        setattr(ndarray, f"__{python}__", _forward(name))
    for python, name in {"neg": "negative", "abs": "absolute", "invert": "invert"}.items():
        setattr(ndarray, f"__{python}__", _unary(name))
    ndarray.__pos__ = _unary("positive")
    ndarray.__divmod__ = _forward("divmod")
    ndarray.__matmul__ = _matmul


_install()
