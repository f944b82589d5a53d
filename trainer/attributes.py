"""The attributes of an object at one moment: what changed since, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any


class Attributes:
    """Notes an object's attributes, and what its lists, dicts and sets hold.

    Args:
        owner: The object.
        skip: Names that do not count.
    """

    def __init__(self, owner: Any, skip: Iterable[str] = ()) -> None:
        self._owner = owner
        self._skip = frozenset(skip)
        self._values = {k: v for k, v in vars(owner).items() if k not in self._skip}
        self._held = {k: _contents(v) for k, v in self._values.items() if _is_container(v)}

    def changed(self) -> list[str]:
        """Names that were assigned, deleted, or whose contents changed since."""
        now = {k: v for k, v in vars(self._owner).items() if k not in self._skip}
        found = [name for name in now if name not in self._values]
        for name, value in self._values.items():
            if name not in now or now[name] is not value:
                found.append(name)
            elif name in self._held and not _same(self._held[name], _contents(value)):
                found.append(name)
        return sorted(found)

    def restore(self) -> None:
        """Puts everything back as it was."""
        live = vars(self._owner)
        for name in [n for n in live if n not in self._values and n not in self._skip]:
            del live[name]
        live.update(self._values)
        for name, contents in self._held.items():
            _refill(self._values[name], contents)


def _is_container(value: Any) -> bool:
    return isinstance(value, list | set | MutableMapping)


def _contents(value: Any) -> Any:
    if isinstance(value, list):
        return list(value)
    return set(value) if isinstance(value, set) else dict(value)


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, set):
        return bool(old == new)
    if len(old) != len(new):
        return False
    if isinstance(old, list):
        return all(a is b for a, b in zip(old, new, strict=True))
    return list(old) == list(new) and all(old[key] is new[key] for key in old)


def _refill(value: Any, contents: Any) -> None:
    if _same(contents, _contents(value)):
        return
    if isinstance(value, list):
        value[:] = contents
        return
    value.clear()
    value.update(contents)
