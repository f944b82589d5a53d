"""The safetensors file: a JSON header, then the values of all arrays with no gap between them.

Our files carry their structure and the SHA-256 of the whole file in the header's metadata. The
digest is written last, over the zeros that held its place when it was computed, so that one pass
over the arrays is enough and every byte of the file is protected.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from minitorch import backend
from minitorch.errors import CheckpointError

DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
    "C128": np.dtype("<c16"),  # in files a pair of F64, because safetensors has no such code
}
CODES = {dtype: code for code, dtype in DTYPES.items()}
CODES |= {dtype.newbyteorder(">"): code for code, dtype in DTYPES.items() if code != "BF16"}
_VERSION = "1"
_START = b'{"__metadata__":{"minitorch.sha256":"'
_DIGEST_AT = 8 + len(_START)
_NO_DIGEST = b"0" * 64
_LEGACY = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"  # the first value in such a file
_MAX_HEADER = 100_000_000
_PICKLE = (
    "which can run any code when it is loaded, so it is refused. Read it with the program that "
    "wrote it, and write its arrays with minitorch.save."
)


@dataclass(frozen=True)
class Header:
    """What the header of a file says, checked against the file's size.

    Attributes:
        tree: the structure's JSON text.
        slots: dtype and shape of each array in the order of the file, by name.
        raw: the header's bytes from the start of the file, with zeros in place of the digest.
        digest: the SHA-256 that the file should have, in hex digits.
    """

    tree: str
    slots: dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
    raw: bytes
    digest: bytes


def write(file: Any, tree: str, entries: dict[str, Any]) -> None:
    """Write a state tree at the current position of a seekable file.

    Args:
        file: an open binary file.
        tree: the structure's JSON text.
        entries: the arrays by name, on any device; a copy is made only of what is not contiguous.
    """
    # Widest items first, so that each array is aligned to its items.
    ordered = sorted(entries, key=lambda name: -entries[name].dtype.itemsize)
    raw = _header(tree, {name: entries[name] for name in ordered})
    start = file.tell()
    digest = hashlib.sha256(raw)
    file.write(raw)
    for name in ordered:
        values = bytes_of(entries[name])
        digest.update(values)
        file.write(values)
    end = file.tell()
    file.seek(start + _DIGEST_AT)
    file.write(digest.hexdigest().encode())
    file.seek(end)


def check_digest(file: Any, where: str) -> None:
    """Read a whole file again and compare its SHA-256 with the one in its header.

    Raises:
        CheckpointError: the storage does not give back what was written.
    """
    head = file.read(_DIGEST_AT + 64)
    digest = hashlib.sha256(head[:_DIGEST_AT] + _NO_DIGEST)
    buffer = memoryview(bytearray(1 << 20))
    while count := file.readinto(buffer):
        digest.update(buffer[:count])
    if head[_DIGEST_AT:] != digest.hexdigest().encode():
        raise CheckpointError(
            f"save: {where} was written, but reading it gave other bytes. The file that was there "
            "before is unchanged. Check the disk."
        )


def read_header(file: Any, where: str) -> Header:
    """Read and check the header at the position of a seekable file.

    Args:
        file: an open binary file.
        where: the file's name for error texts.

    Raises:
        CheckpointError: the file is of another kind, cut short or damaged.
    """
    start = file.tell()
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    prefix = file.read(16)
    length = int.from_bytes(prefix[:8], "little")
    if prefix[8:9] != b"{" or length > _MAX_HEADER:
        raise CheckpointError(f"load: {where} {_kind(prefix)}")
    if size < 8 + length:
        raise damaged(where, f"it is cut short: the header alone needs {8 + length} bytes")
    raw = prefix + file.read(8 + length - len(prefix))
    if not raw.startswith(_START, 8):
        raise CheckpointError(
            f"load: {where} is a safetensors file that minitorch.save did not write, so it holds "
            "no tree and no digest. Read it with minitorch.io.load_file."
        )
    digest = raw[_DIGEST_AT : _DIGEST_AT + 64]
    try:
        fields = json.loads(raw[8:])
        metadata = fields.pop("__metadata__")
        version, tree = metadata["minitorch.version"], metadata["minitorch.tree"]
        if not isinstance(tree, str):
            raise TypeError("the tree is not a text")
        pairs = set(json.loads(metadata["minitorch.complex128"]))
        slots, used = read_slots(fields, pairs)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise damaged(where, f"its header cannot be read ({error})") from error
    if version != _VERSION:
        raise CheckpointError(
            f"load: {where} has version {version!r} of the format; this minitorch reads version "
            f"{_VERSION!r}. Install a newer minitorch-trainer."
        )
    if size != 8 + length + used:
        raise damaged(where, f"it has {size} bytes and its header promises {8 + length + used}")
    raw = raw[:_DIGEST_AT] + _NO_DIGEST + raw[_DIGEST_AT + 64 :]
    return Header(tree, slots, raw, digest)


def read_arrays(file: Any, header: Header, where: str) -> Iterator[tuple[str, np.ndarray]]:
    """Read the arrays that follow the header one after the other, then check the digest.

    Yields:
        Names and new, writable arrays; they are not to be trusted before the end was reached.

    Raises:
        CheckpointError: the file is not what was written.
    """
    digest = hashlib.sha256(header.raw)
    for name, (dtype, shape) in header.slots.items():
        try:
            array = np.empty(shape, dtype)
        except ValueError as error:
            raise damaged(where, f"{name!r} cannot have the shape {shape} ({error})") from error
        values = flat_bytes(array)
        if file.readinto(values) != len(values):
            raise damaged(where, f"it ends within {name!r}")
        digest.update(values)
        if dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
            raise damaged(where, f"{name!r} holds bytes other than 0 and 1 as truth values")
        yield name, array
    if digest.hexdigest().encode() != header.digest:
        raise damaged(where, "its SHA-256 is not the one in its header")


def _header(tree: str, entries: dict[str, Any]) -> bytes:
    fields: dict[str, Any] = {"__metadata__": {}}
    pairs = []
    offset = 0
    for name, array in entries.items():
        code, shape = CODES[array.dtype], list(array.shape)
        if code == "C128":
            code = "F64"
            shape.append(2)
            pairs.append(name)
        end = offset + array.nbytes
        fields[name] = {"dtype": code, "shape": shape, "data_offsets": [offset, end]}
        offset = end
    fields["__metadata__"] = {
        "minitorch.sha256": _NO_DIGEST.decode(),
        "minitorch.version": _VERSION,
        "minitorch.complex128": json.dumps(pairs),
        "minitorch.tree": tree,
    }
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MAX_HEADER:
        raise CheckpointError(
            f"save: the structure of a tree must fit into {_MAX_HEADER} bytes. Got {len(text)}. "
            "Store long lists of numbers and long texts as arrays."
        )
    return len(text).to_bytes(8, "little") + text


def read_slots(fields: dict[str, Any], pairs: set[str]) -> tuple[dict[str, Any], int]:
    """Check the array fields of a header; return the slots by name, and the bytes they need."""
    slots: dict[str, Any] = {}
    offset = 0
    for name, field in sorted(fields.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = DTYPES[field["dtype"]], field["shape"]
        if not all([type(length) is int and length >= 0 for length in shape]):
            raise ValueError(f"the shape of {name!r} is {shape}")
        end = offset + math.prod(shape) * dtype.itemsize
        if field["data_offsets"] != [offset, end]:
            raise ValueError(f"{name!r} does not lie at bytes {offset} to {end}")
        offset = end
        if name in pairs:
            if field["dtype"] != "F64" or shape[-1:] != [2]:
                raise ValueError(f"{name!r} does not hold complex numbers")
            dtype, shape = DTYPES["C128"], shape[:-1]
        slots[name] = (dtype, tuple(shape))
    return slots, offset


def bytes_of(array: Any) -> memoryview:
    """The values of an array of any device as they stand in a file."""
    host = np.ascontiguousarray(backend.to_host(array), DTYPES[CODES[array.dtype]])
    return flat_bytes(host)


def flat_bytes(array: np.ndarray) -> memoryview:
    """The memory of a contiguous array."""
    flat: Any = array.reshape(-1).view(np.uint8)
    return memoryview(flat)


def damaged(where: str, what: str) -> CheckpointError:
    """Return the error for a file that is not what was written."""
    return CheckpointError(f"load: {where} is damaged: {what}. Use an earlier checkpoint.")


def _kind(prefix: bytes) -> str:
    if prefix[:4] == b"PK\x03\x04":
        return (
            "is a zip archive, as torch.save and numpy.savez write it, and no state tree. Read "
            "PyTorch's with minitorch.load, NumPy's with numpy.load."
        )
    if prefix[2 : 2 + len(_LEGACY)] == _LEGACY:
        return (
            "is in PyTorch's format before 1.6, a row of pickles. Write it again in PyTorch: "
            "torch.save(torch.load(path), path)."
        )
    if prefix[:2] in (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"):
        return f"is a pickle, {_PICKLE}"
    if not prefix:
        return "is an empty file. Use an earlier checkpoint."
    return f"is not a state tree: it starts with {prefix!r}. Give a file that minitorch.save wrote."
