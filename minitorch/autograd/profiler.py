"""PyTorch's older place for the profiler."""

from __future__ import annotations

from typing import Any

from ..profiler import profile as _profile
from ..profiler import record_function

__all__ = ["profile", "record_function"]


class profile(_profile):
    """`minitorch.profiler.profile` with PyTorch's older arguments.

    Args:
        enabled: False measures nothing.
        options: As for `minitorch.profiler.profile`; `use_cuda`, `use_device` and `use_cpu` have no
            effect: all there is is watched.
    """

    def __init__(self, enabled: bool = True, **options: Any) -> None:
        for name in ("use_cuda", "use_device", "use_cpu", "use_kineto"):
            options.pop(name, None)
        super().__init__(**options)
        self.enabled = enabled

    def start(self) -> None:
        """Begins to measure, if it is enabled."""
        if self.enabled:
            super().start()
