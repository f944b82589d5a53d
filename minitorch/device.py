"""Devices: where a tensor's array lives."""

from __future__ import annotations

import threading
from typing import Any

from .errors import DeviceError

_TYPES = ("cpu", "cuda")


class device:
    """A place for arrays: `device("cpu")`, `device("cuda")`, `device("cuda", 1)` or `"cuda:1"`.

    Attributes:
        type: `"cpu"` or `"cuda"`.
        index: Number of the GPU, or None for the current one.

    Raises:
        DeviceError: The type is not known here.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: str | int | device, index: int | None = None) -> None:
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int):
            self.type, self.index = "cuda", type
            return
        name, _, number = str(type).partition(":")
        if (
            name not in _TYPES
            or (number and not number.isdigit())
            or (number and index is not None)
        ):
            raise DeviceError(
                f"device: expected 'cpu', 'cuda' or 'cuda:N'. Got {type!r}"
                f"{'' if index is None else f' with index {index}'}. "
                "Apple, TPU and other back ends do not exist here."
            )
        self.type = name
        self.index = int(number) if number else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        inner = f"type={self.type!r}" + ("" if self.index is None else f", index={self.index}")
        return f"device({inner})"

    def __enter__(self) -> device:
        _inside.blocks = (*getattr(_inside, "blocks", ()), self)
        return self

    def __exit__(self, *exception: Any) -> None:
        _inside.blocks = _inside.blocks[:-1]

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)


CPU = device("cpu")
_default = CPU
_inside = threading.local()  # the open `with device(...)` blocks of each thread


def get_default_device() -> device:
    """Where new tensors go when no device is named."""
    blocks = getattr(_inside, "blocks", ())
    return blocks[-1] if blocks else _default


def set_default_device(where: Any) -> None:
    """Sets where new tensors go when no device is named; None is the CPU."""
    global _default
    _default = CPU if where is None or device(where) == CPU else device(where)
