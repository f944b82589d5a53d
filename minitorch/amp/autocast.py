"""Autocast: matrix products in half precision, everything delicate in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..autograd.mode import state
from ..errors import ArgumentError, DtypeError


class autocast:
    """Inside, linear layers, convolutions and matrix products compute in a half type.

    Only for arrays of `device_type`: a layer on another device computes as it would outside. Their
    inputs are rounded to it; on the CPU the products are accumulated in float32. Softmax and norms
    accumulate in float32 whatever they get; losses give float32, and so do prod, cdist, trace,
    quantile and grid_sample; mixed dtypes are promoted. These are PyTorch's lists for the CPU, on
    a GPU, too. Parameters stay float32.

    Args:
        device_type: `"cpu"` or `"cuda"`.
        dtype: float16 or bfloat16. Default: bfloat16 on the CPU, float16 on a GPU.
        enabled: False makes the context do nothing but switch an outer autocast off.
        cache_enabled: Accepted for PyTorch's sake.

    Raises:
        ArgumentError: Another device type.
        DtypeError: Another dtype.
    """

    def __init__(
        self,
        device_type: str = "cpu",
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if device_type not in ("cpu", "cuda"):
            raise ArgumentError(
                f"autocast: device_type must be 'cpu' or 'cuda'. Got {device_type!r}."
            )
        half = dtypes.bfloat16 if device_type == "cpu" else dtypes.float16
        chosen = half if dtype is None else dtypes.of(dtype)
        if chosen not in (dtypes.float16, dtypes.bfloat16):
            raise DtypeError(f"autocast: dtype must be float16 or bfloat16. Got {chosen}.")
        self.device_type = device_type
        self.dtype = chosen
        self.enabled = enabled
        self._previous: list[Any] = []

    def __enter__(self) -> autocast:
        self._previous.append((state.autocast, state.autocast_device))
        state.autocast = self.dtype.numpy if self.enabled else None
        state.autocast_device = self.device_type
        return self

    def __exit__(self, *exc: Any) -> None:
        state.autocast, state.autocast_device = self._previous.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            # One of its own for each call: threads and recursion would share the list of this one.
            with autocast(self.device_type, self.dtype, self.enabled):
                return function(*args, **kwargs)

        return call


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """True inside of an enabled autocast, for `device_type` if that is given."""
    return state.autocast is not None and device_type in (None, state.autocast_device)
