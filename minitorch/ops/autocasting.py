"""Which operations change dtypes within autocast: PyTorch's lists for the CPU.

*Half*: matrix products (mv and dot as well, as on PyTorch's GPU), linear layers, convolutions,
attention, recurrent layers and prelu (`linalg.autocast_operands`). *Full*: losses, and what sums or
measures wide ranges: prod, cdist, trace, quantile, grid_sample. *Widest*: operations of several
tensors, by promotion. All others compute in the dtype that comes.
"""

from __future__ import annotations

from typing import Any

from .. import backend, dtypes
from ..autograd.mode import state
from . import primitive
from .primitive import cast


def full(x: Any) -> Any:
    """Within autocast a tensor of a half type as float32; others as they are."""
    if state.autocast is None or not isinstance(x, primitive.Tensor):
        return x
    array = x._array
    half = array.dtype in dtypes.HALF and backend.device_of(array).type == state.autocast_device
    return cast(x, dtypes.float32.numpy) if half else x
