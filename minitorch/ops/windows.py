"""Windows for spectra: weights that fall to the ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from ..errors import ArgumentError, DtypeError
from . import creation


def _window(
    name: str, length: int, periodic: bool, values: Callable[[Any], Any], options: dict[str, Any]
) -> Any:
    """`values(k / (n - 1))` for k < length, with n one more for periodic windows."""
    if length < 0:
        raise ArgumentError(f"{name}: the length must not be negative. Got {length}.")
    dtype = options.pop("dtype", None)
    dtype = dtypes.get_default_dtype() if dtype is None else dtypes.of(dtype)
    options.pop("layout", None)
    options.pop("pin_memory", None)
    if not dtype.is_floating_point:
        raise DtypeError(f"{name}: the dtype must be floating. Got {dtype}. Use float32.")
    if length <= 1:
        host = np.ones(length)
    else:
        host = values(np.arange(length) / (length if periodic else length - 1))
    return creation.tensor(host.astype(dtype.numpy), **options)


def bartlett_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """A triangle, `1 - |2t - 1|`.

    Args:
        window_length: How many weights.
        periodic: One period of a window that repeats (for spectra), else symmetric.
        options: `dtype, device, requires_grad`.
    """
    return _window(
        "bartlett_window", window_length, periodic, lambda t: 1 - np.abs(2 * t - 1), options
    )


def blackman_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """`0.42 - 0.5 cos 2πt + 0.08 cos 4πt`; arguments as `bartlett_window`."""

    def values(t: Any) -> Any:
        return 0.42 - 0.5 * np.cos(2 * math.pi * t) + 0.08 * np.cos(4 * math.pi * t)

    return _window("blackman_window", window_length, periodic, values, options)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Any,
) -> Any:
    """`alpha - beta cos 2πt`; arguments as `bartlett_window`."""
    return _window(
        "hamming_window",
        window_length,
        periodic,
        lambda t: alpha - beta * np.cos(2 * math.pi * t),
        options,
    )


def hann_window(window_length: int, periodic: bool = True, **options: Any) -> Any:
    """`sin² πt`; arguments as `bartlett_window`."""
    return _window(
        "hann_window", window_length, periodic, lambda t: np.sin(math.pi * t) ** 2, options
    )


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Any
) -> Any:
    """`I₀(beta √(1 - (2t-1)²)) / I₀(beta)`; arguments as `bartlett_window`."""

    def values(t: Any) -> Any:
        return np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta)

    return _window("kaiser_window", window_length, periodic, values, options)
