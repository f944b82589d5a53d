"""What the arguments of `Module.to` mean."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..device import device as Device
from ..tensor import Tensor


def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The device and the floating dtype that arguments of `Module.to` name, or None.

    Raises:
        TypeError: Something else was given, or the dtype is not floating.
    """
    unknown = set(kwargs) - {"device", "dtype", "non_blocking", "copy", "tensor", "memory_format"}
    where, dtype = kwargs.get("device"), kwargs.get("dtype")
    tensor = kwargs.get("tensor")
    for value in args:
        if isinstance(value, Tensor):
            tensor = value
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, str | int | Device):
            where = value
        else:
            dtype = value
    if unknown or len(args) > 4:
        raise TypeError(
            f"Module.to: expected a device, a dtype, both, or a tensor. Got {sorted(unknown)}. "
            "Example: model.to('cuda', minitorch.float16)."
        )
    if tensor is not None:
        return tensor.device, tensor.dtype
    dtype = None if dtype is None else dtypes.of(dtype)
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(
            f"Module.to: a module can only be cast to a floating dtype. Got {dtype}. "
            "Integer weights cannot be trained."
        )
    return where, dtype
