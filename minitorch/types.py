"""Names for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from .device import device
from .dtypes import dtype
from .size import Size
from .tensor import Tensor

__all__ = ["Device", "Number", "Size", "Tensor"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
_dtype, _device, _size = dtype, device, Size | Sequence[int]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
