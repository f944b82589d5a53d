"""IDX files, the format of MNIST.

Source: Y. LeCun, C. Cortes and C. Burges, The MNIST database, 1998: two zero bytes, a code of the
element type, the number of dimensions, the sizes and then the elements, all big-endian.
"""

import math
from pathlib import Path

import numpy as np

from ...errors import DataError

_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | Path) -> np.ndarray:
    """Read an IDX file, plain or gzipped (by its first bytes, not its name).

    Args:
        path: the file.

    Returns:
        An array in the machine's byte order.

    Raises:
        DataError: the file is damaged, cut off, or no IDX file.
    """
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        import gzip
        import zlib

        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            raise _bad(path, f"the gzip data is damaged ({error})") from error
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _DTYPES:
        raise _bad(path, f"it starts with {raw[:4].hex(' ')}, which is no IDX header")
    dtype = np.dtype(_DTYPES[raw[2]])
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise _bad(path, "it ends inside of the header")
    shape = tuple(np.frombuffer(raw, ">i4", raw[3], 4).tolist())
    wanted = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or len(raw) - start != wanted:
        raise _bad(path, f"its header promises {wanted} bytes of data, it has {len(raw) - start}")
    return np.frombuffer(raw, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def _bad(path: str | Path, reason: str) -> DataError:
    return DataError(
        f"read_idx: {path} cannot be read: {reason}. Delete it and get it again (download=True)."
    )
