"""Decorators that say how a custom Function meets autocast."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..autograd.mode import state
from ..tensor import Tensor
from .autocast import autocast, is_autocast_enabled


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Callable[..., Any]:
    """Decorates `forward` of a Function.

    Args:
        fwd: The forward.
        device_type: `"cpu"` or `"cuda"`.
        cast_inputs: A dtype: under autocast, floating inputs on that device are converted to it
            and forward runs without autocast. None runs it under the autocast of the caller.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function = fwd

    @functools.wraps(function)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        enabled = is_autocast_enabled(device_type)
        ctx._autocast_dtype = state.autocast if enabled else None
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return function(ctx, *args, **kwargs)
        target = dtypes.of(cast_inputs)
        with autocast(device_type, enabled=False):
            cast_args = [_cast(x, device_type, target) for x in args]
            cast_kwargs = {k: _cast(x, device_type, target) for k, x in kwargs.items()}
            return function(ctx, *cast_args, **cast_kwargs)

    return call


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates `backward` of a Function: it runs under the autocast that forward ran under.

    Args:
        bwd: The backward.
        device_type: `"cpu"` or `"cuda"`.
    """
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function = bwd

    @functools.wraps(function)
    def call(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = ctx._autocast_dtype
        with autocast(device_type, dtype, enabled=ctx._fwd_used_autocast):
            return function(ctx, *args, **kwargs)

    return call


def _cast(x: Any, device_type: str, target: dtypes.dtype) -> Any:
    if isinstance(x, Tensor):
        fits = x.is_floating_point() and x.device.type == device_type and x.dtype != dtypes.float64
        return x.to(target) if fits else x
    if isinstance(x, list | tuple):
        return type(x)(_cast(item, device_type, target) for item in x)
    if isinstance(x, dict):
        return {key: _cast(item, device_type, target) for key, item in x.items()}
    return x
