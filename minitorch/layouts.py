"""Names for the order of elements in memory; here it is always the strides of the array."""

from __future__ import annotations


class layout:
    """How a tensor is stored: `strided` is the only one here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"minitorch.{self.name}"


class memory_format(layout):
    """A wish for the order of axes in memory, which is accepted and not followed."""


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
