"""Backward runs on the thread that calls it."""

from __future__ import annotations

from typing import Any


class set_multithreading_enabled:
    """Accepted as a function and as a context: backward always runs on one thread.

    Args:
        mode: What PyTorch would do.
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None
