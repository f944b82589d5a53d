"""Parameters and buffers whose shape is known only when the first input comes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..ops.creation import empty
from ..ops.primitive import wrap
from ..tensor import Parameter, Tensor

_SLOT: Any = vars(Tensor)["_array"]


class _Uninitialized:
    """A tensor with a dtype and a device, but without a shape; nothing can be computed with it."""

    __slots__ = ()

    cls_to_become: type = Tensor

    def _start(self, requires_grad: bool, device: Any, dtype: Any) -> None:
        for slot in ("_grad", "_node", "_version", "_view", "_hooks", "_grad_slot"):
            setattr(self, slot, None)
        self._rg = requires_grad  # type: ignore[misc]
        _SLOT.__set__(self, empty(0, device=device, dtype=dtype)._array)

    @property
    def _array(self) -> Any:
        raise ShapeError(
            f"{type(self).__name__}: the shape is not known yet, so that nothing can be computed. "
            "Run the lazy module once on an input, or load its state, before using it."
        )

    @_array.setter
    def _array(self, value: Any) -> None:
        _SLOT.__set__(self, value)

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Becomes an ordinary parameter or buffer of that shape, with values yet to be set.

        Args:
            shape: The shape.
            device: Where it lives; default: where it was declared to.
            dtype: Its dtype; default: the declared one.
        """
        where = self.device if device is None else device
        kind = self.dtype if dtype is None else dtype
        _SLOT.__set__(self, empty(*shape, device=where, dtype=kind)._array)
        self.__class__ = self.cls_to_become

    @property
    def dtype(self) -> Any:
        """The element type that it will have."""
        return self.detach().dtype

    @property
    def device(self) -> Any:
        """Where it will live."""
        return self.detach().device

    @property
    def data(self) -> Tensor:
        """An empty tensor of its dtype on its device; what is assigned decides on both."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        _SLOT.__set__(self, value[:0]._array if value.ndim else empty(0)._array)

    def detach(self) -> Tensor:
        """An empty tensor of its dtype on its device."""
        return wrap(_SLOT.__get__(self))

    def to(self, *args: Any, **options: Any) -> Any:
        """One that will have the dtype and the device that a tensor would get."""
        target = self.detach().to(*args, **options)
        return type(self)(self._rg, target.device, target.dtype)  # type: ignore[call-arg]

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Says whether it will be trained; returns it."""
        self._rg = bool(requires_grad)  # type: ignore[misc]
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin = type(self)(self._rg, self.device, self.dtype)  # type: ignore[call-arg]
        memo[id(self)] = twin
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self._rg, str(self.device), self.dtype)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(_Uninitialized, Parameter):
    """A Parameter of unknown shape; `materialize` gives it one.

    Args:
        requires_grad: Whether it will be trained.
        device: Where it will live.
        dtype: Its dtype.
    """

    __slots__ = ()

    cls_to_become = Parameter

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        self._start(requires_grad, device, dtype)


class UninitializedBuffer(_Uninitialized, Tensor):
    """A buffer of unknown shape; `materialize` gives it one.

    Args:
        requires_grad: Whether it needs a gradient.
        device: Where it will live.
        dtype: Its dtype.
    """

    __slots__ = ()

    cls_to_become = Tensor

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None) -> None:
        self._start(requires_grad, device, dtype)


def is_uninitialized(value: Any) -> bool:
    """True for a parameter or buffer that has no shape yet."""
    return isinstance(value, _Uninitialized)
