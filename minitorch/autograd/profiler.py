"""PyTorch's older place for the profiler."""

from ..profiler import profile, record_function

__all__ = ["profile", "record_function"]
