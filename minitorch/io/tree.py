"""State trees as text: the structure becomes JSON, the arrays a flat list of named entries.

What JSON has no form for is an object with one tag, for example `{"tuple": [...]}`,
`{"tensor": name}` or `{"int": "0x8000000000000000"}`; the README of this folder lists them.
"""

import base64
import json
import math
import struct
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path, PosixPath, WindowsPath
from typing import Any

import numpy as np

from minitorch import backend, dtypes
from minitorch.device import device
from minitorch.errors import CheckpointError, describe
from minitorch.ops.primitive import wrap
from minitorch.size import Size
from minitorch.tensor import Tensor

from .container import CODES, DTYPES

MAX_DEPTH = 64
_FIXES = {
    "bytearray": "Use bytes(value).",
    "defaultdict": "Use dict(value).",
    "Generator": "Save what its get_state() returns.",
}


def encode(tree: Any) -> tuple[Any, dict[str, Any]]:
    """Split a tree into its structure, which JSON can hold, and its arrays.

    Args:
        tree: as for `save_tree`.

    Returns:
        The structure, and the arrays (NumPy's or a device's) by their unique dotted names.

    Raises:
        CheckpointError: a value, key or dtype has no form in a state tree, or a cycle.
    """
    encoder = _Encoder()
    return encoder.node(tree, ""), encoder.entries


def decode(structure: Any, entries: dict[str, Any], target: device | None = None) -> Any:
    """Build the tree again from what `encode` returned; each entry becomes one object.

    Args:
        structure: what JSON holds.
        entries: the arrays by name.
        target: the device for the tensors; None leaves them where their arrays are.

    Raises:
        AttributeError, KeyError, TypeError, ValueError, struct.error: the structure is not one
            that `encode` makes.
    """
    return _Decoder(entries, target).node(structure)


def snapshot(tree: Any) -> Any:
    """Return a copy of a state tree that shares no memory with it; ties stay ties.

    Args:
        tree: a state tree, as for `save_tree`.

    Returns:
        The tree with new containers and new arrays, each on its device; tensors are detached.

    Raises:
        CheckpointError: the tree holds what a state tree cannot hold.
    """
    structure, entries = encode(tree)
    return decode(structure, {name: _copy(array) for name, array in entries.items()})


def _is_key(key: Any) -> bool:
    if type(key) in (tuple, frozenset):
        return all([_is_key(part) for part in key])
    return key is None or type(key) in _KEYS


_KEYS = (str, int, float, bool, bytes, complex)
_TO_TEXT: dict[type, tuple[str, Callable[[Any], str]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode()),
    complex: ("complex", lambda value: struct.pack("<dd", value.real, value.imag).hex()),
    Size: ("size", lambda value: json.dumps(list(value))),
    dtypes.dtype: ("dtype", lambda value: value.name),
    device: ("device", str),
    PosixPath: ("path", str),
    WindowsPath: ("path", str),
}
_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "bytes": lambda text: base64.b64decode(text, validate=True),
    "complex": lambda text: complex(*struct.unpack("<dd", bytes.fromhex(text))),
    "size": lambda text: Size(json.loads(text)),
    "dtype": lambda text: {dtype.name: dtype for dtype in dtypes.ALL}[text],
    "device": device,
    "path": Path,
}


class _Encoder:
    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._open: set[int] = set()

    def node(self, value: Any, path: str) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**63 else {"int": hex(value)}
        if kind is float:
            # The eight bytes keep the sign and the payload of a NaN.
            return value if math.isfinite(value) else {"float": struct.pack("<d", value).hex()}
        if kind in (dict, OrderedDict, list, tuple, set, frozenset):
            return self._container(value, path)
        if isinstance(value, Tensor):
            return {"tensor": self._array(value._array, path)}
        if kind in (np.ndarray, np.memmap):
            return {"array": self._array(value, path)}
        if isinstance(value, np.generic) and value.dtype in CODES:
            return {"scalar": [CODES[value.dtype], value.tobytes().hex()]}
        if kind in _TO_TEXT:
            tag, to_text = _TO_TEXT[kind]
            return {tag: to_text(value)}
        fix = _FIXES.get(kind.__name__, "Convert it to one of these, or leave it out.")
        raise CheckpointError(
            "state tree: values must be Tensor, ndarray, NumPy scalar, int, float, complex, str, "
            "bytes, bool, None, Path, dict, list, tuple or set. Got "
            f"{kind.__module__}.{kind.__qualname__} at {_place(path)}. {fix}"
        )

    def _container(self, value: Any, path: str) -> Any:
        if id(value) in self._open:
            raise CheckpointError(
                f"state tree: a container must not hold itself. Got a cycle at {_place(path)}. "
                "Store a name or a number in place of the reference."
            )
        if len(self._open) == MAX_DEPTH:
            raise CheckpointError(
                f"state tree: at most {MAX_DEPTH} levels can be nested. Got more at "
                f"{_place(path)}. Flatten the tree."
            )
        self._open.add(id(value))
        try:
            if isinstance(value, dict):
                return self._dict(value, path)
            nodes = [self.node(child, _join(path, i)) for i, child in enumerate(value)]
            if type(value) is list:
                return nodes
            if type(value) is not tuple:
                nodes.sort(key=json.dumps)  # equal sets give equal files
            return {type(value).__name__: nodes}
        finally:
            self._open.remove(id(value))

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        for key in value:
            if not _is_key(key):
                raise CheckpointError(
                    "state tree: keys must be str, bytes, a number, bool, None, or a tuple of "
                    f"these. Got {type(key).__name__} {key!r} in the dict at {_place(path)}. "
                    "Use str(key)."
                )
        nodes = {key: self.node(child, _join(path, key)) for key, child in value.items()}
        if all([type(key) is str for key in nodes]):
            return {"dict": nodes}
        return {"items": [[self.node(key, path), node] for key, node in nodes.items()]}

    def _array(self, array: Any, path: str) -> str:
        if id(array) in self._names:
            return self._names[id(array)]
        if array.dtype not in CODES:
            names = ", ".join(dtype.name for dtype in DTYPES.values())
            raise CheckpointError(
                f"state tree: the dtype of an array must be one of {names}. Got "
                f"{describe(array)} at {_place(path)}. Convert it with astype()."
            )
        base = name = path[1:].encode("utf-8", "replace").decode() or "value"
        count = 1
        while name in self.entries or name == "__metadata__":
            count += 1
            name = f"{base}#{count}"
        self.entries[name] = array
        self._names[id(array)] = name
        return name


class _Decoder:
    def __init__(self, entries: dict[str, Any], target: device | None) -> None:
        self._entries = entries
        self._target = target
        self._tensors: dict[str, Tensor] = {}
        self._tags: dict[str, Callable[[Any], Any]] = {
            "dict": self._dict,
            "items": self._items,
            "tuple": self._tuple,
            "set": lambda body: set(self._tuple(body)),
            "frozenset": lambda body: frozenset(self._tuple(body)),
            "tensor": self._tensor,
            "array": self._array,
            "scalar": self._scalar,
            "int": self._int,
            "float": self._float,
            **_FROM_TEXT,
        }

    def node(self, node: Any) -> Any:
        kind = type(node)
        if kind is list:
            return [self.node(child) for child in node]
        if kind is not dict:
            return node
        ((tag, body),) = node.items()
        return self._tags[tag](body)

    def _dict(self, body: dict[str, Any]) -> Any:
        return {key: self.node(child) for key, child in body.items()}

    def _items(self, body: list[Any]) -> Any:
        return {self.node(key): self.node(child) for key, child in body}

    def _tuple(self, body: list[Any]) -> Any:
        return tuple([self.node(child) for child in body])

    def _tensor(self, name: str) -> Tensor:
        if name not in self._tensors:
            tensor = wrap(self._entries[name])
            self._tensors[name] = tensor if self._target is None else tensor.to(self._target)
        return self._tensors[name]

    def _array(self, name: str) -> np.ndarray:
        return self._entries[name]

    def _scalar(self, body: list[str]) -> Any:
        code, digits = body
        (value,) = np.frombuffer(bytes.fromhex(digits), DTYPES[code])
        return value

    def _int(self, digits: str) -> int:
        return int(digits, 16)

    def _float(self, digits: str) -> float:
        return struct.unpack("<d", bytes.fromhex(digits))[0]


def _copy(array: Any) -> Any:
    if not isinstance(array, np.ndarray):
        record = backend.of(array)
        # A copy lands on the current device.
        return record.move(array.copy(), record.index_of(array))
    return np.array(array, DTYPES[CODES[array.dtype]], order="C")


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}"


def _place(path: str) -> str:
    return repr(path[1:]) if path else "the root"
