"""Variable, which has long been the same as Tensor."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


class _Tensors(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_Tensors):
    """PyTorch's old name: `Variable(tensor)` is a tensor that shares its memory.

    Args:
        data: A tensor.
        requires_grad: Whether operations on it are recorded.
    """

    def __new__(cls, data: Any, requires_grad: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)
