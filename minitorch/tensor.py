"""Tensor: an array, whether it requires grad, its gradient, and the operation that made it."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import backend, dtypes
from .autograd import engine
from .autograd.handle import RemovableHandle
from .autograd.mode import enable_grad
from .autograd.node import Node, Version
from .conversion import Conversions
from .device import CPU, device
from .errors import DtypeError, GraphError, ShapeError, describe
from .ops import creation, families, inplace, joining, primitive, shape
from .ops.primitive import ViewInfo, cast, wrap
from .size import Size


class Tensor(Conversions):
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

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """True if the elements lie in row order, or in that of a channels-last format."""
        if getattr(memory_format, "name", "").startswith("channels_last"):
            fits = self.ndim == (5 if memory_format.name.endswith("3d") else 4)
            return fits and bool(self.movedim(1, -1)._array.flags.c_contiguous)
        return bool(self._array.flags.c_contiguous)

    @property
    def layout(self) -> Any:
        """`minitorch.strided`, the only one."""
        from .layouts import strided

        return strided

    @property
    def is_cpu(self) -> bool:
        """True if it lives on the CPU."""
        return self.device.type == "cpu"

    @property
    def is_sparse(self) -> bool:
        """False: every tensor is dense here."""
        return False

    is_quantized = is_meta = is_mps = is_xla = is_mkldnn = is_nested = is_sparse

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
    def T(self) -> Any:
        """All axes in reverse order."""
        return shape.reversed_axes(self)

    @property
    def mT(self) -> Any:
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
                f"requires_grad_: only floating and complex tensors have gradients. "
                f"Got {describe(self)}. Convert with .float()."
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
        if self._rg and value._array.dtype.kind not in "fVc":
            raise DtypeError(
                f"data: a tensor that requires grad holds floats. Got {describe(value)}. "
                "Convert with .float()."
            )
        self._bump("data")
        self._array, self._version = value._array, primitive.version_of(value)
        self._view = None

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

        reference = weakref.ref(self)  # the node must not keep its own output alive

        def keep(g: Tensor) -> None:
            t = reference()
            if t is not None:
                kept = g if g._rg else g.detach()
                t._grad = kept if t._grad is None else t._grad + kept

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
            hooks = self._node.hooks()
            keep = hooks.pop(-1, None)  # retain_grad sees what the others made of the gradient
            handle = RemovableHandle(hooks, hook)
            if keep is not None:
                hooks[-1] = keep
            return handle
        if self._hooks is None:
            self._hooks = {}
        return RemovableHandle(self._hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Calls `hook(tensor)` after backward has added to the `.grad` of this leaf."""
        if self._node is not None:
            raise GraphError(
                f"register_post_accumulate_grad_hook: only leaves accumulate gradients. "
                f"Got {describe(self)}."
            )
        if self._hooks is None:
            self._hooks = {}
        return RemovableHandle(self._hooks, engine.AfterAccumulation(hook))

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
            with enable_grad():
                fresh = view.replay(view.base)
            self._node, self._rg = fresh._node, True

    def _bump(self, name: str) -> None:
        """Notes that `name` wrote into the memory."""
        inplace.bump(self, name)

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

    __hash__ = object.__hash__  # not a Python function: backward looks leaves up in dicts

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
        _fill_slots(out, copy.deepcopy(self._array), self._rg)
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


primitive.Tensor = families.Tensor = Tensor  # type: ignore[misc]
__all__ = ["Parameter", "RemovableHandle", "Size", "Tensor"]
