"""record_function: a label that stays in the program and costs one look without a profiler."""

from __future__ import annotations

import contextlib
from typing import Any

from ..ops.observing import labelled


class record_function(contextlib.ContextDecorator):
    """A label for a part of the program, as a context or decorator; profilers show it.

    Args:
        name: The label.
        args: Accepted for PyTorch's signature.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        label = labelled(self.name)
        label.__enter__()
        self._open.append(label)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._open.pop().__exit__(*exc)
