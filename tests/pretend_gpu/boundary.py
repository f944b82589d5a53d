"""What may cross between host and pretend device: operands, dtypes, results, devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import cuda
from .counting import counters

_SCALARS = (bool, int, float, complex)
_CHARS = frozenset("?bhilqBHILQefdFD")
_accepts_bfloat16 = False


class Diverged(AssertionError):
    """The code relies on a result of NumPy that CuPy does not give, and would not report."""


class Array:
    """The slots of a device array; `arrays.ndarray` adds the behaviour."""

    __slots__ = ("__weakref__", "_base", "_device", "_memory", "_root")

    _memory: np.ndarray
    _device: int
    _base: Any
    _root: Any

    concrete: type[Array]

    def __init_subclass__(cls) -> None:
        Array.concrete = cls


@contextmanager
def bfloat16_accepted() -> Iterator[None]:
    """Inside, arrays may have ml_dtypes' bfloat16, as from CuPy 14 on; CuPy 13 refuses it."""
    global _accepts_bfloat16
    before, _accepts_bfloat16 = _accepts_bfloat16, True
    try:
        yield
    finally:
        _accepts_bfloat16 = before


def check_dtype(dtype: Any) -> np.dtype:
    """`dtype` as a NumPy dtype.

    Raises:
        ValueError: CuPy has no arrays of it.
    """
    checked = np.dtype(dtype)
    if checked.name == "bfloat16" and _accepts_bfloat16:
        return checked
    if checked.char not in _CHARS or checked.name == "bfloat16":
        raise ValueError(f"Unsupported dtype {checked}")
    if checked.byteorder == ">":
        raise ValueError(f"Unsupported dtype {checked} with big-endian byte-order")
    return checked


def is_scalar(value: Any) -> bool:
    """True for the Python and NumPy scalars that a CUDA kernel takes as an argument."""
    if type(value) in _SCALARS:
        return True
    return isinstance(value, np.generic) and value.dtype.kind in "biufc"


def check_on_current_device(array: Array) -> None:
    """Kernels run on the current device and cannot read another one's memory.

    Raises:
        ValueError: `array` lives on another device.
    """
    here = cuda.get_device_id()
    if array._device != here:
        raise ValueError(
            f"The device where the array resides ({array._device}) is different from the "
            f"current device ({here}). Peer access is unavailable between these devices."
        )


def operand(value: Any, *, on_device: bool = True) -> Any:
    """The host value behind one kernel argument: a device array or a scalar.

    Raises:
        TypeError: Anything else, above all a NumPy array.
        ValueError: The array is on another device.
    """
    if isinstance(value, Array):
        if on_device:
            check_on_current_device(value)
        return value._memory
    if is_scalar(value):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def argument(value: Any, *, on_device: bool = True) -> Any:
    """Like `operand` for any argument of a function: options pass, host arrays do not."""
    if isinstance(value, Array) or is_scalar(value):
        return operand(value, on_device=on_device)
    if isinstance(value, list | tuple):
        return type(value)(argument(item, on_device=on_device) for item in value)
    if hasattr(value, "__array__") and not isinstance(value, type):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def arrays_in(values: Any) -> list[Array]:
    """All device arrays in nested lists, tuples and dictionaries."""
    if isinstance(values, Array):
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return [array for item in values for array in arrays_in(item)]
    return []


def check_scalar_promotion(values: Sequence[Any]) -> None:
    """NumPy scalars promote by value in CuPy 13 and by dtype in CuPy 14 and NumPy 2.

    Raises:
        Diverged: The two rules give different dtypes.
    """
    dtypes = [value.dtype for value in values if isinstance(value, np.ndarray)]
    scalars = [value for value in values if isinstance(value, np.generic)]
    if not dtypes or not scalars:
        return
    strong = np.result_type(*dtypes, *(scalar.dtype for scalar in scalars))
    weak = np.result_type(*dtypes, *(scalar.item() for scalar in scalars))
    if strong != weak:
        raise Diverged(
            f"A NumPy scalar of {scalars[0].dtype} with an array of {dtypes[0]} gives {weak} in "
            f"CuPy 13 and {strong} in CuPy 14 and NumPy 2. Pass a Python scalar."
        )


def owner(memory: Any) -> Any:
    """The object at the end of the chain of bases: the same one for all views of a buffer."""
    while getattr(memory, "base", None) is not None:
        memory = memory.base
    return memory


def wrap(result: Any, sources: Sequence[Array] = ()) -> Any:
    """The device value of a host result: arrays and scalars become device arrays.

    A result that shares memory with a source becomes its view; anything else is an allocation on
    the current device.
    """
    if isinstance(result, tuple):
        return tuple(wrap(item, sources) for item in result)
    if isinstance(result, list):
        return [wrap(item, sources) for item in result]
    if isinstance(result, np.generic) or type(result) in _SCALARS:
        result = np.asarray(result)
    if not isinstance(result, np.ndarray):
        return result
    check_dtype(result.dtype)
    for source in sources:
        if result is source._memory:
            return source
    root = owner(result)
    for source in sources:
        if source._root is root:
            return _make(
                result, root, source._device, source if source._base is None else source._base
            )
    counters.record("allocations", result.nbytes)
    return _make(result, root, cuda.get_device_id(), None)


def view_of(source: Array, memory: np.ndarray) -> Any:
    """A view of `source` on the same device."""
    return _make(
        memory, source._root, source._device, source if source._base is None else source._base
    )


def _make(memory: np.ndarray, root: Any, device: int, base: Any) -> Any:
    array = object.__new__(Array.concrete)
    array._memory, array._root, array._device, array._base = memory, root, device, base
    return array


def upload(host: np.ndarray) -> Any:
    """A device copy of a host array on the current device: counted."""
    check_dtype(host.dtype)
    memory = np.array(host, order="K", copy=True, subok=False)
    counters.record("host_to_device", memory.nbytes)
    counters.record("allocations", memory.nbytes)
    return _make(memory, memory, cuda.get_device_id(), None)


def download(array: Array, *, blocking: bool = True) -> np.ndarray:
    """A host copy of a device array: counted, with the wait."""
    counters.record("device_to_host", array._memory.nbytes)
    if blocking:
        counters.record("synchronisations")
    return array._memory.copy()


def copy_to_current_device(array: Array, order: str = "K") -> Any:
    """A copy on the current device: counted when it comes from another one."""
    memory = array._memory.copy(order)
    if array._device != cuda.get_device_id():
        counters.record("device_to_device", memory.nbytes)
    return wrap(memory)


def quietly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls NumPy without its floating point warnings: CuPy gives none."""
    with np.errstate(all="ignore"):
        return function(*args, **kwargs)
