"""Other dtypes, other devices, Python and NumPy: the conversions of a Tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import backend, dtypes
from .device import device
from .errors import DeviceError, GraphError, ShapeError, describe
from .ops import creation, inplace, primitive
from .ops.methods import TensorMethods
from .ops.primitive import Op, cast, finish_one, wrap

if TYPE_CHECKING:
    from .autograd.node import Node
    from .tensor import Tensor

_Device = device


class Conversions(TensorMethods):
    """The methods that give the values of a Tensor in another form."""

    __slots__ = ()

    _array: Any

    def to(
        self: Any,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        copy: bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """The tensor with another dtype or on another device; itself where nothing changes.

        Args:
            args: A dtype, a device, a device and a dtype, or a Tensor to follow.
        """
        for arg in args:
            if isinstance(arg, primitive.Tensor):
                device, dtype = arg.device, arg.dtype
            elif isinstance(arg, bool):
                continue
            elif isinstance(arg, str | int | _Device):
                device = arg
            elif arg is not None:
                dtype = arg
        out = self if dtype is None else cast(self, dtypes.of(dtype).numpy)
        if device is not None:
            out = _moved(out, _Device(device))
        return out.clone() if copy and out is self else out

    def type(self: Any, dtype: Any = None, non_blocking: Any = False) -> Any:
        """The tensor in another dtype; without one, the name of PyTorch's tensor type."""
        from .ops.inspecting import type_of

        return type_of(self, dtype)

    def type_as(self, other: Tensor) -> Tensor:
        """The tensor with the dtype and device of `other`."""
        return self.to(other)

    def cpu(self) -> Tensor:
        """The tensor on the CPU."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Tensor:
        """The tensor on a GPU."""
        return self.to(device="cuda" if device is None else device)

    def float(self) -> Tensor:
        """The tensor in float32."""
        return self.to(dtypes.float32)

    def double(self) -> Tensor:
        """The tensor in float64."""
        return self.to(dtypes.float64)

    def half(self) -> Tensor:
        """The tensor in float16."""
        return self.to(dtypes.float16)

    def bfloat16(self) -> Tensor:
        """The tensor in bfloat16."""
        return self.to(dtypes.bfloat16)

    def long(self) -> Tensor:
        """The tensor in int64."""
        return self.to(dtypes.int64)

    def int(self) -> Tensor:
        """The tensor in int32."""
        return self.to(dtypes.int32)

    def short(self) -> Tensor:
        """The tensor in int16."""
        return self.to(dtypes.int16)

    def char(self) -> Tensor:
        """The tensor in int8."""
        return self.to(dtypes.int8)

    def byte(self) -> Tensor:
        """The tensor in uint8."""
        return self.to(dtypes.uint8)

    def bool(self) -> Tensor:
        """The tensor in bool."""
        return self.to(dtypes.bool_)

    def item(self) -> Any:
        """The value of a one-element tensor as a Python number; waits for the device.

        Raises:
            ShapeError: There is not exactly one element.
        """
        if self._array.size != 1:
            raise ShapeError(
                f"item: exactly one element is needed. Got {describe(self)}. "
                "Use tolist(), or reduce with .sum() or .mean()."
            )
        value = backend.to_host(self._array).reshape(())
        return float(value) if value.dtype.kind == "V" else value.item()

    def tolist(self) -> Any:
        """The values as nested lists of Python numbers."""
        host = backend.to_host(self._array)
        return (host.astype(np.float32) if host.dtype.kind == "V" else host).tolist()

    def numpy(self: Any, *, force: Any = False) -> np.ndarray:
        """The values as a NumPy array: a read-only view of the memory.

        Args:
            force: Give a writable copy, from any device and out of any graph.

        Raises:
            GraphError: The tensor requires grad.
            DeviceError: The tensor is on a GPU.
        """
        if force:
            return np.array(backend.to_host(self._array))
        if self.requires_grad:
            raise GraphError(
                f"numpy: a tensor that requires grad has no plain array. Got {describe(self)}. "
                "Use .detach().numpy()."
            )
        if type(self._array) is not np.ndarray:
            raise DeviceError(
                f"numpy: the tensor must be on the CPU. Got {describe(self)} on {self.device}. "
                "Use .cpu().numpy()."
            )
        view = self._array.view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        host = self.numpy()
        if dtype is not None and host.dtype != dtype:
            return host.astype(dtype)
        return host.copy() if copy else host

    def __dlpack__(self: Any, **options: Any) -> Any:
        if self.requires_grad:
            raise GraphError(
                f"dlpack: a tensor that requires grad cannot be exported. Got {describe(self)}. "
                "Use .detach()."
            )
        # A consumer may write into what it gets, which no version would tell.
        on_host = type(self._array) is np.ndarray
        return (self._array.copy() if on_host else self._array).__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    # ---- new tensors like this one ---------------------------------------------------------------

    def _like(self: Any, options: dict[str, Any]) -> dict[str, Any]:
        return {"dtype": self.dtype, "device": self.device} | options

    def new_tensor(self, data: Any, **options: Any) -> Tensor:
        """`tensor(data)` with the dtype and device of this one."""
        return creation.tensor(data, **self._like(options))

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        """Zeros with the dtype and device of this one."""
        return creation.zeros(*size, **self._like(options))

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """Ones with the dtype and device of this one."""
        return creation.ones(*size, **self._like(options))

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """Arbitrary values with the dtype and device of this one."""
        return creation.empty(*size, **self._like(options))

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Tensor:
        """One value with the dtype and device of this one."""
        return creation.full(size, fill_value, **self._like(options))

    def is_shared(self) -> Any:
        """False: memory is not shared between processes here."""
        return False

    def pin_memory(self: Any) -> Tensor:
        """The tensor itself; host memory is not page-locked here."""
        return self

    def data_ptr(self) -> Any:
        """The address of the first element."""
        if type(self._array) is np.ndarray:
            return self._array.ctypes.data
        return self._array.data.ptr

    def get_device(self: Any) -> Any:
        """The number of the GPU, -1 on the CPU."""
        index = self.device.index
        return -1 if index is None else index

    def apply_(self: Any, function: Callable[[Any], Any]) -> Tensor:
        """Puts `function(element)` in the place of every element; slow, on the CPU."""
        host = backend.to_host(self._array)
        values = np.array([function(x) for x in host.reshape(-1).tolist()], dtype=host.dtype)
        return inplace.copy_(self, wrap(values.reshape(host.shape)))


class _Move(Op):
    """Copies to another device; the gradient comes back."""

    name = "to_device"

    def backward(self, node: Node, g: Any, saved: Any) -> Any:
        source = node.params["source"]
        if isinstance(g, primitive.Tensor):
            return (_moved(g, source),)
        return (backend.transfer(g, source),)


_MOVE = _Move()


def _moved(t: Tensor, target: device) -> Tensor:
    array = backend.transfer(t._array, target)
    if array is t._array:
        return t
    return finish_one(_MOVE, array, t, {"source": t.device})
