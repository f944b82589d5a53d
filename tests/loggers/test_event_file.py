"""The record format, against known checksums and tensorboardX's own writer."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitorch.loggers.event_file import crc32c, frame, unique_name

# RFC 3720, B.4, and the usual check value.
KNOWN = [
    (b"", 0),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]
LENGTHS = [*range(10), 63, 64, 2047, 2048, 2049, 4095, 4096, 4097, 65_536, 100_003]


def reference(data: bytes) -> int:
    from tensorboardX.crc32c import _crc32c

    return _crc32c(data)


@pytest.mark.parametrize(("data", "expected"), KNOWN)
def test_known_checksums(data: bytes, expected: int) -> None:
    assert crc32c([data]) == [expected]
    assert crc32c([data] * 40) == [expected] * 40


@pytest.mark.parametrize("length", LENGTHS)
def test_checksum_of_any_length(length: int) -> None:
    data = np.random.default_rng(length).bytes(length)
    assert crc32c([data]) == [reference(data)]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=90))
def test_checksums_of_many_records(records: list[bytes]) -> None:
    assert crc32c(records) == [reference(record) for record in records]


def test_short_and_long_records_together() -> None:
    rng = np.random.default_rng(0)
    records = [rng.bytes(n) for n in [0, 3, 5000, *range(4, 60), 70_000]]
    assert crc32c(records) == [reference(record) for record in records]


def test_frames_are_tensorboardx_records(tmp_path: Path) -> None:
    from tensorboardX.record_writer import RecordWriter

    payloads = [np.random.default_rng(n).bytes(n) for n in [*range(0, 120), 5000]]
    writer = RecordWriter(str(tmp_path / "records"))
    for payload in payloads:
        writer.write(payload)
    writer.close()
    assert frame(payloads) == (tmp_path / "records").read_bytes()
    assert frame([]) == b""


def test_a_frame_by_hand() -> None:
    masked = [(c >> 15 | c << 17) + 0xA282EAD8 & 0xFFFFFFFF for c in map(reference, [b"x"])]
    data = frame([b"x"])
    assert data[:8] == struct.pack("<Q", 1)
    assert data[12:13] == b"x"
    assert data[13:] == struct.pack("<I", masked[0])


def test_names_are_unique_and_sort_by_time() -> None:
    names = [unique_name() for _ in range(1000)]
    assert len(set(names)) == len(names)
    assert all(name.startswith("events.out.tfevents.") for name in names)
    seconds = [float(".".join(name.split(".")[3:5])) for name in names]
    assert seconds == sorted(seconds)
