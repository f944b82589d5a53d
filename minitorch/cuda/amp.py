"""PyTorch's older place for mixed precision on GPUs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import amp, dtypes
from ..amp.custom import custom_bwd as _custom_bwd
from ..amp.custom import custom_fwd as _custom_fwd
from ..amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`amp.autocast("cuda")`; arrays on the CPU are left alone.

    Args:
        enabled: False switches an outer autocast off.
        dtype: float16 or bfloat16.
        cache_enabled: Accepted for PyTorch's sake.
    """

    def __init__(
        self, enabled: bool = True, dtype: Any = dtypes.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """`amp.GradScaler("cuda")`.

    Args:
        init_scale: The first scale.
        growth_factor: The scale is multiplied by it when it grows.
        backoff_factor: The scale is multiplied by it after an overflow.
        growth_interval: Updates without overflow before the scale grows.
        enabled: False makes every method pass through.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        factors = growth_factor, backoff_factor, growth_interval
        super().__init__("cuda", init_scale, *factors, enabled)


custom_fwd: Callable[..., Any] = functools.partial(_custom_fwd, device_type="cuda")
custom_bwd: Callable[..., Any] = functools.partial(_custom_bwd, device_type="cuda")
