"""Switches of CUDA's libraries; they can be set and change nothing."""

from __future__ import annotations


class _Matmul:
    """The switches of matrix products."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


def is_built() -> bool:
    """True if there is a GPU that arrays can live on."""
    from ..cuda import is_available

    return is_available()


def enable_flash_sdp(enabled: bool) -> None:
    """Changes nothing: attention has one implementation."""


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Changes nothing: attention has one implementation."""


def enable_math_sdp(enabled: bool) -> None:
    """Changes nothing: attention has one implementation."""
