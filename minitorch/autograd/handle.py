"""What registering a hook returns."""

from __future__ import annotations

from typing import Any

_hook_ids = iter(range(2**62))


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook out again."""

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks = hooks
        self.id = next(_hook_ids)
        hooks[self.id] = hook

    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()
