"""Shapes as PyTorch shows them."""

from __future__ import annotations

from typing import Any


class Size(tuple[int, ...]):
    """A shape: a tuple of ints with `numel()`."""

    __slots__ = ()

    def numel(self) -> int:
        """The product of the lengths."""
        total = 1
        for n in self:
            total *= n
        return total

    def __getitem__(self, key: Any) -> Any:
        item = super().__getitem__(key)
        return Size(item) if isinstance(key, slice) else item

    def __add__(self, other: Any) -> Any:
        return Size(tuple(self) + tuple(other))

    def __repr__(self) -> str:
        return f"minitorch.Size({list(self)})"
