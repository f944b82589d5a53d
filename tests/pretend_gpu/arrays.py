"""The device array: memory layout, transfers, conversion and views, as `cupy.ndarray` has them.

Operators come from `ufuncs.py`, and the methods that NumPy computes alike from `functions.py`.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from . import cuda, indexing
from .boundary import (
    Array,
    argument,
    check_dtype,
    check_on_current_device,
    copy_to_current_device,
    download,
    is_scalar,
    quietly,
    view_of,
    wrap,
)
from .counting import counters


@dataclass(frozen=True)
class Flags:
    """Layout of an array; read-only, and without NumPy's `writeable`."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool

    @property
    def forc(self) -> bool:
        """Contiguous in either order."""
        return self.c_contiguous or self.f_contiguous

    @property
    def fnc(self) -> bool:
        """Contiguous in Fortran order only."""
        return self.f_contiguous and not self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        names = {"C_CONTIGUOUS": "c_contiguous", "F_CONTIGUOUS": "f_contiguous"}
        return bool(getattr(self, {**names, "OWNDATA": "owndata"}[name]))


@dataclass(frozen=True)
class MemoryPointer:
    """Where the first element of an array lies."""

    ptr: int
    device_id: int

    @property
    def device(self) -> cuda.Device:
        """The device of the memory."""
        return cuda.Device(self.device_id)


class _Capsule:
    """What `__dlpack__` hands over: only `from_dlpack` of this package can open it."""

    def __init__(self, array: ndarray) -> None:
        self.array = array


class ndarray(Array):
    """An array in the memory of a pretend GPU.

    Args:
        shape: Length of each axis.
        dtype: Type of the elements.
        memptr, strides: Not offered here.
        order: `"C"` or `"F"`.
    """

    __slots__ = ()
    __array_priority__ = 100
    __hash__ = None

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: None = None,
        strides: None = None,
        order: Any = "C",
    ) -> None:
        if memptr is not None or strides is not None:
            raise NotImplementedError("the pretend GPU has no raw pointers")
        self._memory = garbage(shape, dtype, order or "C")
        self._root, self._base, self._device = self._memory, None, cuda.get_device_id()
        counters.record("allocations", self._memory.nbytes)

    # Layout

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._memory.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._memory = self._memory.reshape(shape, copy=False)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._memory.strides

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._memory.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self._memory.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._memory.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._memory.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._memory.nbytes

    @property
    def base(self) -> ndarray | None:
        """The array that this one is a view of."""
        return self._base

    @property
    def flags(self) -> Flags:
        """Layout in memory."""
        flags = self._memory.flags
        return Flags(flags.c_contiguous, flags.f_contiguous, self._base is None)

    @property
    def data(self) -> MemoryPointer:
        """Where the memory lies."""
        return MemoryPointer(self._memory.__array_interface__["data"][0], self._device)

    @property
    def device(self) -> cuda.Device:
        """The device that holds the array."""
        return cuda.Device(self._device)

    @property
    def T(self) -> ndarray:
        """The axes reversed; the array itself below two axes."""
        return self if self.ndim < 2 else view_of(self, self._memory.T)

    @property
    def real(self) -> ndarray:
        """Real part, a view."""
        return self if self.dtype.kind != "c" else view_of(self, self._memory.real)

    @property
    def imag(self) -> ndarray:
        """Imaginary part, a view for complex arrays."""
        return wrap(self._memory.imag, [self])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.data.ptr, False),
            "stream": 1,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._device)

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        return _Capsule(self)

    # Host values

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> np.ndarray:
        """A copy on the host: counted, and waits for the device."""
        if out is None:
            return np.array(download(self, blocking=blocking), order=order.upper(), copy=None)
        if not isinstance(out, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        if out.dtype != self.dtype:
            raise TypeError(f"{out.dtype} array cannot be obtained from {self.dtype} array")
        if out.shape != self.shape:
            raise ValueError(
                f"Shape mismatch. Expected shape: {self.shape}, actual shape: {out.shape}"
            )
        out[...] = download(self, blocking=blocking)
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        """Overwrites the array with a host array: counted."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if arr.dtype != self.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if arr.shape != self.shape:
            raise ValueError(f"Shape mismatch. Old shape: {self.shape}, new shape: {arr.shape}")
        if not self.flags.forc:
            raise RuntimeError("Cannot set to non-contiguous array")
        counters.record("host_to_device", arr.nbytes)
        self._memory[...] = arr

    def item(self) -> Any:
        """The only element as a Python scalar: counted, and waits."""
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return download(self).item()

    def tolist(self) -> Any:
        """Nested Python lists: counted, and waits."""
        return download(self).tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The bytes of all elements: counted, and waits."""
        return download(self).tobytes(order)

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
            )
        return bool(download(self))

    def __int__(self) -> int:
        return int(download(self))

    def __float__(self) -> float:
        return float(download(self))

    def __complex__(self) -> complex:
        return complex(download(self))

    def __repr__(self) -> str:
        return repr(download(self))

    def __str__(self) -> str:
        return str(download(self))

    def __format__(self, spec: str) -> str:
        return format(download(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        from .functions import array

        return array, (self.get(),)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    # Copies and views

    def copy(self, order: str = "C") -> ndarray:
        """A copy on the current device, also of an array on another one."""
        return copy_to_current_device(self, order)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        with self.device:
            return self.copy()

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: Any = True
    ) -> ndarray:
        """The array with elements of another type."""
        if casting is not None:
            raise TypeError("casting is not supported yet")
        if subok is not None:
            raise TypeError("subok is not supported yet")
        check_on_current_device(self)
        target = check_dtype(dtype)
        return wrap(quietly(self._memory.astype, target, order=order, copy=bool(copy)), [self])

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        """A view, with the bytes read as another type."""
        if type is not None:
            raise TypeError("the pretend GPU has no subclasses")
        memory = self._memory.view() if dtype is None else self._memory.view(check_dtype(dtype))
        return view_of(self, memory)

    def fill(self, value: Any) -> None:
        """Sets every element to a scalar."""
        check_on_current_device(self)
        if not is_scalar(value):
            raise TypeError(f"Unsupported type {type(value)}")
        self._memory.fill(value)

    def reshape(self, *shape: Any, order: Any = "C") -> ndarray:
        """The elements in another shape: a view where possible."""
        shape = shape[0] if len(shape) == 1 else shape
        return wrap(self._memory.reshape(argument(shape), order=order), [self])

    def transpose(self, *axes: Any) -> ndarray:
        """The axes in another order, a view."""
        return view_of(self, self._memory.transpose(*argument(axes)))

    # Elements

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[ndarray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[index] for index in range(self.shape[0]))

    def __getitem__(self, key: Any) -> ndarray:
        return indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        indexing.setitem(self, key, value)

    def take(self, indices: Any, axis: int | None = None, out: Any = None) -> ndarray:
        """Elements at `indices` along an axis."""
        return indexing.take(self, indices, axis, out)

    def scatter_add(self, slices: Any, value: Any) -> None:
        """Adds values at an index, repeated places included."""
        indexing.scatter("add", self, slices, value)

    def scatter_max(self, slices: Any, value: Any) -> None:
        """Keeps the larger of old and new values at an index."""
        indexing.scatter("maximum", self, slices, value)

    def scatter_min(self, slices: Any, value: Any) -> None:
        """Keeps the smaller of old and new values at an index."""
        indexing.scatter("minimum", self, slices, value)

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        namespace = sys.modules[__package__]
        if method != "__call__" or not hasattr(namespace, ufunc.__name__):
            return NotImplemented
        outputs = options.get("out", ())
        for value in (*inputs, *outputs):
            if not isinstance(value, ndarray | np.ndarray) and not is_scalar(value):
                return NotImplemented
        if outputs:
            options["out"] = outputs[0] if len(outputs) == 1 else outputs
        return getattr(namespace, ufunc.__name__)(*inputs, **options)

    def __array_function__(self, func: Any, types: Any, args: Any, options: Any) -> Any:
        if not all(issubclass(kind, ndarray | np.ndarray) for kind in types):
            return NotImplemented
        path = [*func.__module__.split(".")[1:], func.__name__]
        try:
            ours = functools.reduce(getattr, path, sys.modules[__package__])
        except AttributeError:
            return NotImplemented
        return NotImplemented if ours is func else ours(*args, **options)


def garbage(shape: Any, dtype: Any, order: Any = "C") -> np.ndarray:
    """Host memory with values that no one expects, as fresh device memory has."""
    memory = np.empty(shape, check_dtype(dtype), order=order)
    kind = memory.dtype.kind
    memory.fill(math.nan if kind in "fcV" else True if kind == "b" else np.iinfo(memory.dtype).max)
    return memory


def open_capsule(source: Any) -> ndarray:
    """The array that another object offers through DLPack, as a view."""
    capsule = source.__dlpack__()
    if not isinstance(capsule, _Capsule):
        raise BufferError("the pretend GPU reads DLPack from its own arrays only")
    array = capsule.array
    return view_of(array, array._memory.view())
