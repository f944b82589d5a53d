"""TensorBoard's file format: checksummed records, one event each.

A record is the payload's length (u64), the masked CRC32C of those eight bytes, the payload, and
its masked CRC32C, all little-endian. The checksums of many records, or of the pieces of a long
one, are computed together in NumPy: a Python loop reaches 8 MB/s and holds the interpreter lock.
"""

import itertools
import os
import socket
import struct
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from minitorch.loggers.append_file import AppendFile
from minitorch.loggers.background import Sink

_POLYNOMIAL = 0x82F63B78
_LONG = 2048
_MANY = 32
_count = itertools.count()


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_INVERTED = bytes(255 - byte for byte in range(256))
_TABLE = _make_table()
_TABLE_NUMPY = np.array(_TABLE, dtype=np.uint32)


def crc32c(records: Sequence[bytes]) -> list[int]:
    """CRC-32C (Castagnoli, reflected, as in iSCSI) of each record."""
    short = [i for i, record in enumerate(records) if 4 <= len(record) < _LONG]
    if len(short) < _MANY:
        return [_crc_one(record) for record in records]
    width = max(len(records[i]) for i in short)
    padded = b"".join(_inverted_start(records[i]).rjust(width, b"\0") for i in short)
    registers = _registers(np.frombuffer(padded, np.uint8).reshape(len(short), width))
    results = dict(zip(short, (registers ^ np.uint32(0xFFFFFFFF)).tolist(), strict=True))
    return [results[i] if i in results else _crc_one(r) for i, r in enumerate(records)]


def _crc_one(data: bytes) -> int:
    if len(data) >= _LONG:
        return _crc_long(data)
    register = 0xFFFFFFFF
    for byte in data:
        register = _TABLE[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


def _inverted_start(data: bytes) -> bytes:
    # A register that starts at ones equals one that starts at zero with these bytes inverted;
    # from zero, leading zero bytes change nothing, so that records can be padded on the left.
    return data[:4].translate(_INVERTED) + data[4:]


def _registers(rows: np.ndarray) -> np.ndarray:
    """The register after each row of bytes uint8[n, width], started at zero: uint32[n]."""
    register = np.zeros(len(rows), np.uint32)
    for column in np.ascontiguousarray(rows.T):
        register = _TABLE_NUMPY[(register ^ column) & 0xFF] ^ (register >> 8)
    return register


def _crc_long(data: bytes) -> int:
    """The pieces' registers, joined in pairs: crc(a ‖ b) = shift(crc(a), len(b)) ⊕ crc(b)."""
    log_width = (len(data) - 1).bit_length() // 2
    pieces = 1 << ((len(data) - 1) >> log_width).bit_length()
    padded = _inverted_start(data).rjust(pieces << log_width, b"\0")
    registers = _registers(np.frombuffer(padded, np.uint8).reshape(pieces, -1))
    while len(registers) > 1:
        registers = _apply(_shift(log_width), registers[0::2]) ^ registers[1::2]
        log_width += 1
    return int(registers[0]) ^ 0xFFFFFFFF


@lru_cache(maxsize=64)
def _shift(log_bytes: int) -> np.ndarray:
    """What 2**log_bytes zero bytes do to each bit of a register: uint32[32]."""
    if log_bytes == 0:
        bits = np.left_shift(np.uint32(1), np.arange(32, dtype=np.uint32))
        return _TABLE_NUMPY[bits & 0xFF] ^ (bits >> 8)
    half = _shift(log_bytes - 1)
    return _apply(half, half)


def _apply(operator: np.ndarray, registers: np.ndarray) -> np.ndarray:
    bits = (registers[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    return np.bitwise_xor.reduce(operator * bits, axis=1, dtype=np.uint32)


@lru_cache(maxsize=4096)
def _header(length: int) -> bytes:
    data = struct.pack("<Q", length)
    return data + struct.pack("<I", _mask(crc32c([data]))[0])


def _mask(sums: Sequence[int]) -> np.ndarray:
    crc = np.array(sums, dtype=np.uint32)
    return (crc >> 15 | crc << 17) + np.uint32(0xA282EAD8)


def frame(payloads: Sequence[bytes]) -> bytes:
    """The payloads as records, one after the other."""
    sums = _mask(crc32c(payloads)).astype("<u4").tobytes()
    parts = [
        part
        for i, payload in enumerate(payloads)
        for part in (_header(len(payload)), payload, sums[4 * i : 4 * i + 4])
    ]
    return b"".join(parts)


def unique_name() -> str:
    """A file name that TensorBoard reads and no other writer has; later ones sort after it."""
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    host = socket.gethostname().replace(os.sep, "_")
    return (
        f"events.out.tfevents.{seconds}.{nanoseconds:09d}.{host}.{os.getpid()}.{next(_count):06d}"
    )


class Encoder(Protocol):
    """What turns logged items into the bytes of events."""

    def version(self, wall_time: float) -> bytes:
        """The first event of a file."""
        ...

    def event(self, wall_time: float, step: int, payload: Any) -> bytes:
        """One logged item."""
        ...


class EventFile(Sink):
    """One event file with a unique name; opened again it continues the same file."""

    def __init__(self, folder: str, encoder: Encoder) -> None:
        self._folder = folder
        self._encoder = encoder
        self.path = os.path.join(folder, unique_name())

    def open(self) -> None:
        """Create the file with the event that states its version, or go on at its end."""
        try:
            self._file = AppendFile.reopen(self.path)
        except FileNotFoundError:
            self._file = AppendFile.create(self.path)
            self._file.write(frame([self._encoder.version(time.time())]))

    def encode(self, item: tuple[float, int, Any]) -> bytes:
        """One item as the bytes of an event."""
        return self._encoder.event(*item)

    def write(self, records: list[bytes]) -> None:
        """Append the events, each as a record."""
        self._file.write(frame(records))

    def sync(self) -> None:
        """Wait until the disk has every record."""
        self._file.sync()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
