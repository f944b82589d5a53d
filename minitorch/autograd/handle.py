"""What registering a hook returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

_next_id = itertools.count().__next__


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook out; also a context manager.

    Args:
        hooks: Where the hook is put, by number; the order is that of the calls.
        hook: What is put there.
        prepend: Put it before what is there.
        after: Called once the hook was taken out.
    """

    def __init__(
        self,
        hooks: dict[int, Any],
        hook: Any,
        prepend: bool = False,
        after: Callable[[], None] | None = None,
    ) -> None:
        self._hooks = hooks
        self._after = after
        self.id = _next_id()
        if prepend:
            others = dict(hooks)
            hooks.clear()
            hooks[self.id] = hook
            hooks.update(others)
        else:
            hooks[self.id] = hook

    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        if self._hooks.pop(self.id, None) is not None and self._after is not None:
            self._after()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()
