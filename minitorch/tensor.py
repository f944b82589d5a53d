"""Tensor: an array, whether it requires grad, its gradient, and the operation that made it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import backend, dtypes
from .autograd import engine
from .autograd.mode import no_grad
from .autograd.node import Node, Version
from .device import CPU, device
from .errors import DtypeError, GraphError, ShapeError, describe
from .ops import creation, families, inplace, joining, primitive, shape
from .ops.methods import TensorMethods
from .ops.primitive import ViewInfo, cast, finish, wrap

_hook_ids = iter(range(2**62))


class Tensor(TensorMethods):
    """An n-dimensional array that operations are recorded on.

    Made by `minitorch.tensor(...)` and the other creation functions; `Tensor(data)` makes a
    tensor of the default dtype, as in PyTorch.

    Attributes:
        requires_grad: Operations on it are recorded.
        grad: The gradient that backward accumulated, a Tensor of the same shape, or None.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_array",
        "_grad",
        "_grad_slot",
        "_hooks",
        "_node",
        "_rg",
        "_version",
        "_view",
    )

    _array: Any
    _rg: bool
    _grad: Tensor | None
    _node: Node | None
    _version: Version | None
    _view: ViewInfo | None
    _hooks: dict[int, Callable[[Any], Any]] | None
    _grad_slot: Any

    __array_priority__ = 1000
    __array_ufunc__ = None  # so that `numpy_array * tensor` asks the Tensor

    def __init__(self, *data: Any) -> None:
        if len(data) == 1 and not isinstance(data[0], int):
            values = creation.tensor(data[0])
            source = cast(values, dtypes.get_default_dtype().numpy)
        else:
            source = creation.empty(data) if data else creation.empty(0)
        for slot in ("_grad", "_node", "_version", "_view", "_hooks", "_grad_slot"):
            setattr(self, slot, None)
        self._array = source._array
        self._rg = False

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The length of each axis."""
        return Size(self._array.shape)

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one axis."""
        if dim is None:
            return Size(self._array.shape)
        return self._array.shape[shape.axis_of("size", self._array.ndim, dim)]

    @property
    def dtype(self) -> dtypes.dtype:
        """The element type."""
        return dtypes._BY_NUMPY[self._array.dtype]

    @property
    def device(self) -> device:
        """Where the array lives."""
        return CPU if type(self._array) is np.ndarray else backend.device_of(self._array)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        n: int = self._array.ndim
        return n

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements."""
        return int(self._array.size)

    nelement = numel

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return int(self._array.dtype.itemsize)

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(self._array.nbytes)

    def stride(self, dim: int | None = None) -> Any:
        """The step in elements along each axis, or along one."""
        steps = tuple(n // self.itemsize for n in self._array.strides)
        return steps if dim is None else steps[shape.axis_of("stride", self.ndim, dim)]

    def is_contiguous(self) -> bool:
        """True if the elements lie in row order."""
        return bool(self._array.flags.c_contiguous)

    def is_floating_point(self) -> bool:
        """True for float16, bfloat16, float32 and float64."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """True for complex dtypes."""
        return self.dtype.is_complex

    @property
    def is_cuda(self) -> bool:
        """True if it lives on a GPU."""
        return self.device.type == "cuda"

    @property
    def T(self) -> Any:  # noqa: N802  PyTorch spells it so
        """All axes in reverse order."""
        return shape.reversed_axes(self)

    @property
    def mT(self) -> Any:  # noqa: N802  PyTorch spells it so
        """The last two axes exchanged."""
        return shape.mT(self)

    # ---- autograd --------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """True if operations on it are recorded."""
        if self._view is not None:
            self._sync_view()
        return self._rg

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Switches recording of operations on this leaf; returns it.

        Raises:
            DtypeError: The dtype is not floating.
            GraphError: It is the result of a recorded operation.
        """
        if self._view is not None:
            self._sync_view()
        if self._node is not None:
            if requires_grad:
                return self
            raise GraphError(
                f"requires_grad_: only leaves can be switched off. Got {describe(self)} made by "
                f"{self._node.op.name}. Use detach()."
            )
        if requires_grad and self._array.dtype.kind not in "fVc":
            raise DtypeError(
                f"requires_grad_: only floating tensors have gradients. Got {describe(self)}. "
                "Convert with .float()."
            )
        self._rg = bool(requires_grad)
        return self

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward accumulated."""
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None and (
            not isinstance(value, Tensor)
            or value._array.shape != self._array.shape
            or value._array.dtype != self._array.dtype
        ):
            raise ShapeError(
                f"grad: a gradient must have the shape and dtype of its tensor, {describe(self)}. "
                f"Got {describe(value)}."
            )
        self._grad = value

    @property
    def grad_fn(self) -> Node | None:
        """The recorded operation that made it, or None for a leaf."""
        if self._view is not None:
            self._sync_view()
        return self._node

    @property
    def is_leaf(self) -> bool:
        """True if no recorded operation made it."""
        return self.grad_fn is None

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Accumulates gradients into the leaves; see `minitorch.autograd.backward`."""
        if self._view is not None:
            self._sync_view()
        engine.backward(self, gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """The same memory outside of the graph; writes to it are still noticed by backward."""
        out = wrap(self._array)
        out._version = primitive.version_of(self)
        return out

    def detach_(self) -> Tensor:
        """Cuts this tensor off the graph that made it."""
        self._node = None
        self._rg = False
        self._view = None
        return self

    @property
    def data(self) -> Tensor:
        """The same memory outside of the graph; a write through it counts as in-place."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise DtypeError(f"data: a Tensor is needed. Got {type(value).__name__}.")
        self._array = value._array
        self._view = None
        self._bump("data")

    def retain_grad(self) -> None:
        """Keeps the gradient of this intermediate value in `.grad`."""
        if not self.requires_grad:
            raise GraphError(
                f"retain_grad: the tensor must require grad. Got {describe(self)}. "
                "Call it on the result of a recorded operation."
            )
        node = self._node
        if node is None:
            return

        def keep(g: Tensor) -> None:
            self._grad = g.detach() if self._grad is None else self._grad + g.detach()

        node.hooks()[-1] = keep

    @property
    def retains_grad(self) -> bool:
        """True if `retain_grad` was called on this intermediate value."""
        return self._node is not None and -1 in (self._node.meta or {}).get("hooks", {})

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Calls `hook(grad)` when the gradient of this tensor is computed.

        What the hook returns takes the place of the gradient.

        Raises:
            GraphError: The tensor does not require grad.
        """
        if not self.requires_grad:
            raise GraphError(
                f"register_hook: the tensor must require grad. Got {describe(self)}. "
                "Call requires_grad_() first."
            )
        if self._node is not None:
            return RemovableHandle(self._node.hooks(), hook)
        if self._hooks is None:
            self._hooks = {}
        return RemovableHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(
        self, hook: Callable[[Tensor], None]
    ) -> RemovableHandle:
        """Calls `hook(tensor)` after backward has added to the `.grad` of this leaf."""
        if self._node is not None:
            raise GraphError(
                f"register_post_accumulate_grad_hook: only leaves accumulate gradients. "
                f"Got {describe(self)}."
            )
        if self._hooks is None:
            self._hooks = {}
        hooks = self.__dict__.setdefault("_post_accumulate_hooks", {})
        return RemovableHandle(hooks, hook)

    def _sync_view(self) -> None:
        """Renews the history of a view whose base was changed by a recorded write."""
        view = self._view
        assert view is not None
        version = view.base._version
        if version is None or version[2] == view.generation:
            return
        view.generation = version[2]
        if view.base._view is not None:
            view.base._sync_view()
        if view.base._rg:
            with _recording():
                fresh = view.replay(view.base)
            self._node, self._rg = fresh._node, True

    def _bump(self, name: str) -> None:
        """Notes that `name` wrote into the memory."""
        inplace.bump(self, name)

    @property
    def _version_number(self) -> int:
        return 0 if self._version is None else int(self._version[0])

    # ---- conversion and moving -------------------------------------------------------------------

    def to(
        self,
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
            if isinstance(arg, Tensor):
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

    def type(self, dtype: Any = None) -> Any:
        """The tensor in another dtype; without one, the name of PyTorch's tensor type."""
        return f"minitorch.{self.dtype.name}" if dtype is None else self.to(dtype)

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

    def numpy(self, *, force: Any = False) -> np.ndarray:
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
            raise primitive.DeviceError(
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

    def __dlpack__(self, **options: Any) -> Any:
        if self.requires_grad:
            raise GraphError(
                f"dlpack: a tensor that requires grad cannot be exported. Got {describe(self)}. "
                "Use .detach()."
            )
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    # ---- new tensors like this one ---------------------------------------------------------------

    def _like(self, options: dict[str, Any]) -> dict[str, Any]:
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

    # ---- Python protocols ------------------------------------------------------------------------

    def __len__(self) -> Any:
        if not self._array.ndim:
            raise TypeError("len: a 0-d tensor has no length. Use .item() for its value.")
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        if not self._array.ndim:
            raise TypeError("iteration: a 0-d tensor has no axis to run over. Use .item().")
        return iter(joining.unbind(self, 0))

    def __contains__(self, value: Any) -> Any:
        return bool((self == value).any())

    def __bool__(self) -> Any:
        if self._array.size != 1:
            raise ShapeError(
                f"bool: the truth of several elements is ambiguous. Got {describe(self)}. "
                "Use .any() or .all()."
            )
        return bool(self.item())

    def __float__(self) -> Any:
        return float(self.item())

    def __int__(self) -> Any:
        return int(self.item())

    def __index__(self) -> Any:
        if self._array.dtype.kind not in "iub":
            raise TypeError(f"index: only integer tensors are positions. Got {describe(self)}.")
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __hash__(self) -> Any:
        return id(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self._array.ndim else format(str(self), spec)

    def __repr__(self) -> str:
        from .printing import tensor_repr

        return tensor_repr(self)

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if self.grad_fn is not None:
            raise GraphError(
                f"deepcopy: only leaves can be copied. Got {describe(self)} made by "
                f"{self._node.op.name if self._node else ''}. Use .detach().clone()."
            )
        out = object.__new__(type(self))
        memo[id(self)] = out
        _fill_slots(out, self._array.copy(), self._rg)
        if self._grad is not None:
            out._grad = copy.deepcopy(self._grad.detach(), memo)
        out.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.grad_fn is not None:
            raise GraphError(
                f"pickle: only leaves can be pickled. Got {describe(self)}. Use .detach() first."
            )
        host = np.array(backend.to_host(self._array))
        return _rebuild, (type(self), host, str(self.device), self._rg, dict(self.__dict__))

    # ---- small helpers that PyTorch programs call ------------------------------------------------

    def is_shared(self) -> Any:
        """False: memory is not shared between processes here."""
        return False

    def pin_memory(self) -> Tensor:
        """The tensor itself; host memory is not page-locked here."""
        return self

    def data_ptr(self) -> Any:
        """The address of the first element."""
        if type(self._array) is np.ndarray:
            return self._array.ctypes.data
        return self._array.data.ptr

    def get_device(self) -> Any:
        """The number of the GPU, -1 on the CPU."""
        index = self.device.index
        return -1 if index is None else index

    def apply_(self, function: Callable[[Any], Any]) -> Tensor:
        """Puts `function(element)` in the place of every element; slow, on the CPU."""
        host = backend.to_host(self._array)
        values = np.array([function(x) for x in host.reshape(-1).tolist()], dtype=host.dtype)
        return inplace.copy_(self, wrap(values.reshape(host.shape)))


_Device = device


class Parameter(Tensor):
    """A leaf that a Module trains.

    Args:
        data: The values; the memory is shared.
        requires_grad: Whether it is trained.

    Raises:
        DtypeError: The dtype is not floating but the parameter shall be trained.
    """

    __slots__ = ()

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        source = creation.empty(0) if data is None else data
        if not isinstance(source, Tensor):
            source = creation.tensor(source)
        _fill_slots(self, source._array, False)
        if isinstance(data, Tensor):
            self._version = primitive.version_of(data)
        if requires_grad:
            self.requires_grad_()

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Size(tuple[int, ...]):
    """A shape: a tuple of ints with `numel()`."""

    __slots__ = ()

    def numel(self) -> int:
        """The product of the lengths."""
        total = 1
        for n in self:
            total *= n
        return total

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        return Size(item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Any:
        return Size(tuple(self) + tuple(other))

    def __repr__(self) -> str:
        return f"minitorch.Size({list(self)})"


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook out again."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks = hooks
        self.id = next(_hook_ids)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def _fill_slots(t: Any, array: Any, requires_grad: bool) -> None:
    t._array = array
    t._rg = requires_grad
    t._grad = t._node = t._version = t._view = t._hooks = t._grad_slot = None


def _rebuild(
    kind: type, host: np.ndarray, where: str, requires_grad: bool, extra: dict[str, Any]
) -> Tensor:
    """A tensor from its pickled parts."""
    t: Tensor = object.__new__(kind)
    _fill_slots(t, backend.from_host(host, device(where)), requires_grad)
    t.__dict__.update(extra)
    return t


def _recording() -> Any:
    from .autograd.mode import enable_grad

    return enable_grad()


class _Move(primitive.Op):
    """Copies to another device; the gradient comes back."""

    name = "to_device"

    def backward(self, node: Node, g: Any, saved: Any) -> Any:
        source = node.params["source"]
        if isinstance(g, Tensor):
            return (_moved(g, source),)
        return (backend.transfer(g, source),)


_MOVE = _Move()


def _moved(t: Tensor, target: device) -> Tensor:
    array = backend.transfer(t._array, target)
    if array is t._array:
        return t
    return finish(_MOVE, array, (t,), {"source": t.device})


primitive.Tensor = families.Tensor = Tensor  # type: ignore[misc]
__all__ = ["Parameter", "RemovableHandle", "Size", "Tensor", "no_grad"]
