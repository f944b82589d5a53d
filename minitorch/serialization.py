"""Names around loading that matter only where files are pickles; here they hold no code."""

from __future__ import annotations

from typing import Any


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Nothing to allow: loading never runs code."""


def get_safe_globals() -> list[Any]:
    """An empty list: loading never runs code."""
    return []


class safe_globals:
    """A context that allows nothing, since loading never runs code."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: Any) -> None:
        return None
