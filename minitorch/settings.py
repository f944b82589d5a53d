"""Global switches that programs set."""

from __future__ import annotations

import warnings

from .errors import ArgumentError

_deterministic = {"mode": False, "warn_only": False}
_precision = ["highest"]
_PRECISIONS = ("highest", "high", "medium")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Notes the wish. On the CPU every operation gives the same bits in every run, whatever the
    number of threads; on GPUs sums of scattered values depend on their order.
    """
    _deterministic.update(mode=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """True after `use_deterministic_algorithms(True)`."""
    return _deterministic["mode"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """True after `use_deterministic_algorithms(True, warn_only=True)`."""
    return _deterministic["warn_only"]


def set_float32_matmul_precision(precision: str) -> None:
    """Notes the wish: products of float32 are computed in float32 here.

    Raises:
        ArgumentError: Another word than `"highest"`, `"high"` and `"medium"`.
    """
    if precision not in _PRECISIONS:
        raise ArgumentError(
            f"set_float32_matmul_precision: must be one of {_PRECISIONS}. Got {precision!r}."
        )
    _precision[0] = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was given; `"highest"` at the start."""
    return _precision[0]


def note_eager(name: str) -> None:
    """Says that what should be compiled runs eagerly."""
    warnings.warn(
        f"{name}: nothing is compiled from its source, so this runs eagerly; the results are the "
        "same. minitorch.compile records and replays.",
        UserWarning,
        stacklevel=3,
    )
