"""Reading and writing by index, with CuPy's rules and its silent differences made loud."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .boundary import (
    Array,
    Diverged,
    check_on_current_device,
    is_scalar,
    operand,
    upload,
    view_of,
    wrap,
)
from .counting import counters

_BAD_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
    "boolean arrays are valid indices"
)


class Key:
    """An index in host form, and what it means on a GPU.

    Attributes:
        parts: The tuple to index the host memory with.
        integers, masks: Numbers of integer and boolean arrays in it.
    """

    def __init__(self, key: Any) -> None:
        self.integers = self.masks = 0
        self.parts = tuple(self._part(item) for item in (key if isinstance(key, tuple) else (key,)))
        if self.masks > 1:
            raise IndexError("CuPy takes at most one boolean array in an index")

    @property
    def is_basic(self) -> bool:
        """True when the index gives a view."""
        return not (self.integers or self.masks)

    @property
    def viewing_parts(self) -> tuple[Any, ...]:
        """The basic parts, so that NumPy gives a view and never a scalar."""
        return self.parts if Ellipsis in self.parts else (*self.parts, Ellipsis)

    def _part(self, item: Any) -> Any:
        if item is None or item is Ellipsis:
            return item
        if isinstance(item, slice):
            for bound in (item.start, item.stop, item.step):
                if bound is not None:
                    operator.index(bound)
            return item
        if isinstance(item, np.ndarray):
            raise TypeError(
                f"Unsupported type {type(item)}: an index array on the host would be copied to "
                "the device on every use"
            )
        if isinstance(item, list | bool | np.bool_):
            item = upload(_host_index(item))
        if isinstance(item, Array):
            return self._array(item)
        if is_scalar(item):
            return operator.index(item)
        raise IndexError(_BAD_INDEX)

    def _array(self, array: Array) -> np.ndarray:
        check_on_current_device(array)
        kind = array._memory.dtype.kind
        if kind == "b":
            self.masks += 1
        elif kind in "iu":
            self.integers += 1
        else:
            raise IndexError(
                "arrays used as indices must be of integer or boolean type. "
                f"(actual: {array._memory.dtype.type})"
            )
        return array._memory


def _host_index(item: Any) -> np.ndarray:
    host = np.array(item)
    if host.size == 0:
        return host.astype(np.int32)
    if host.dtype.kind not in "iub":
        raise IndexError(_BAD_INDEX)
    return host


def getitem(array: Array, key: Any) -> Any:
    """`array[key]`: a view for basic indices, a new array for others."""
    where = Key(key)
    if where.is_basic:
        return view_of(array, array._memory[where.viewing_parts])
    check_on_current_device(array)
    if where.masks:
        counters.record("synchronisations")
    return wrap(np.array(_reading(array, where)))


def _reading(array: Array, where: Key) -> np.ndarray:
    try:
        return array._memory[where.parts]
    except IndexError as error:
        raise _wrapped_index(error, where) from error


def _wrapped_index(error: IndexError, where: Key) -> Exception:
    if where.integers and "out of bounds" in str(error):
        return Diverged(f"CuPy wraps indices around in silence where NumPy says: {error}")
    return error


def setitem(array: Array, key: Any, value: Any) -> None:
    """`array[key] = value` for a device array or a scalar."""
    where = Key(key)
    check_on_current_device(array)
    if not isinstance(value, Array) and not is_scalar(value):
        raise TypeError(f"Unsupported type {type(value)}")
    host = operand(value)
    if where.is_basic:
        array._memory[where.viewing_parts] = host
        return
    if is_scalar(value):
        host = upload(np.asarray(value, dtype=array._memory.dtype))._memory
    if where.masks:
        counters.record("synchronisations")
    _check_duplicates(array, where, host)
    try:
        array._memory[where.parts] = host
    except IndexError as error:
        raise _wrapped_index(error, where) from error


def _check_duplicates(array: Array, where: Key, host: np.ndarray) -> None:
    """Refuses different values for one place: the GPU stores any of them."""
    if not where.integers or host.size < 2:
        return
    places = np.arange(array._memory.size).reshape(array._memory.shape)
    places = _reading(_as_array(places), where).ravel()
    first, inverse = np.unique(places, return_index=True, return_inverse=True)[1:]
    if first.size == places.size:
        return
    shape = _reading(array, where).shape
    values = np.broadcast_to(_squeezed(host, len(shape)), shape).ravel()
    same = values == values[first][inverse]
    if not np.all(same | (values != values)):
        raise Diverged("Repeated indices with different values: CuPy stores any one of them.")


def _as_array(memory: np.ndarray) -> Array:
    array: Array = object.__new__(Array.concrete)
    array._memory = memory
    return array


def _squeezed(host: np.ndarray, ndim: int) -> np.ndarray:
    while host.ndim > ndim and host.shape[0] == 1:
        host = host[0]
    return host


def take(array: Array, indices: Any, axis: int | None = None, out: Any = None) -> Any:
    """`array.take(indices, axis)`; indices are a device array, an integer or a list."""
    check_on_current_device(array)
    if isinstance(indices, np.ndarray):
        raise TypeError(f"Unsupported type {type(indices)}")
    if isinstance(indices, list | tuple):
        indices = upload(np.array(indices, dtype=int))
    host = operand(indices)
    try:
        result = np.take(array._memory, host, axis=axis)
    except IndexError as error:
        raise Diverged(f"CuPy wraps indices around in silence where NumPy says: {error}") from error
    if out is None:
        return wrap(result)
    if out.dtype != array._memory.dtype:
        raise TypeError("Output dtype mismatch")
    if out.shape != result.shape:
        raise ValueError("Output shape mismatch")
    out._memory[...] = result
    return out


_ADDABLE = frozenset("int32 float16 float32 float64 complex64 complex128 uint32 uint64".split())
_ORDERABLE = frozenset("int32 float32 float64 uint32 uint64".split())
_BITWISE = frozenset("int32 uint32 int64 uint64".split())
SCATTERS = {
    "add": _ADDABLE,
    "subtract": _ADDABLE,
    "maximum": _ORDERABLE,
    "minimum": _ORDERABLE,
    "bitwise_and": _BITWISE,
    "bitwise_or": _BITWISE,
    "bitwise_xor": _BITWISE,
}


def scatter(name: str, array: Array, key: Any, value: Any) -> None:
    """`array[key] op= value` with repeated places combined, for the dtypes that have atomics.

    Raises:
        TypeError: The dtype has no atomic operation.
    """
    where = Key(key)
    check_on_current_device(array)
    host = operand(value)
    if not where.is_basic:
        dtype = array._memory.dtype
        if dtype.name not in SCATTERS[name]:
            raise TypeError(
                f"{name}.at only supports {', '.join(sorted(SCATTERS[name]))}, as data type. "
                f"(actual: {dtype})"
            )
        if is_scalar(value):
            upload(np.asarray(value, dtype=dtype))
        if where.masks:
            counters.record("synchronisations")
    try:
        getattr(np, name).at(array._memory, where.parts, host)
    except IndexError as error:
        raise _wrapped_index(error, where) from error
