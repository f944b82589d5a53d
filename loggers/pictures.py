"""Arrays as pictures: axis order, range and the PNG format, with zlib alone."""

import struct
import zlib
from typing import Any

import numpy as np

from minitorch.loggers.values import describe, is_real, to_array

_COLOUR_TYPE = {1: 0, 2: 4, 3: 2, 4: 6}  # grey, grey + alpha, RGB, RGBA


def to_pixels(tag: str, image: Any, dataformats: str) -> np.ndarray:
    """The image as uint8[H, W, C], a copy.

    Floats are read as [0, 1] and clipped; NaN is black; booleans are black and white; integers
    are clipped to [0, 255]. A batch ("N" in the formats) becomes one grid.

    Args:
        tag: name in messages.
        image: real numbers; the axes are named by dataformats.
        dataformats: an order of the letters H, W and optionally C and N.

    Raises:
        TypeError: not real numbers.
        ValueError: formats that do not name the axes, or not 1 to 4 channels.
    """
    array = to_array(image)
    if not is_real(array):
        raise TypeError(
            f"an image needs real numbers. Got {tag}: {describe(array)}. Pass uint8 or floats."
        )
    letters = dataformats.upper()
    if sorted(letters) not in (["H", "W"], ["C", "H", "W"], ["C", "H", "N", "W"]):
        raise ValueError(
            "dataformats must name each axis once: 'HW', 'CHW', 'HWC', 'NCHW' or 'NHWC'. "
            f"Got {dataformats!r} for {tag}."
        )
    if len(letters) != array.ndim:
        raise ValueError(
            f"dataformats must have one letter an axis. Got {dataformats!r} for {tag}: "
            f"{describe(array)}. Pass dataformats='{_guess(array)}'."
        )
    for letter in "CN":
        if letter not in letters:
            array, letters = array[np.newaxis], letter + letters
    array = array.transpose([letters.index(letter) for letter in "NHWC"])
    count, height, width, channels = array.shape
    if channels not in _COLOUR_TYPE:
        raise ValueError(
            f"an image must have 1 to 4 channels. Got {channels} in {tag}: "
            f"{describe(to_array(image))} as {dataformats!r}. Is the order of axes another?"
        )
    if 0 in (count, height, width):
        raise ValueError(
            f"an image must have pixels. Got {tag}: {describe(to_array(image))}. Skip empty ones."
        )
    return _grid(_to_uint8(array))


def _guess(array: np.ndarray) -> str:
    orders = {2: "HW", 3: "HWC" if array.shape[-1] in (1, 3, 4) else "CHW"}
    return orders.get(array.ndim, "NHWC" if array.shape[-1:] in ((1,), (3,), (4,)) else "NCHW")


def _to_uint8(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype.kind in "iu":
        return np.clip(array, 0, 255).astype(np.uint8)
    unit = np.nan_to_num(array.astype(np.float32), nan=0.0, posinf=1.0, neginf=0.0)
    return np.rint(np.clip(unit, 0.0, 1.0) * 255.0).astype(np.uint8)


def _grid(images_NHWC: np.ndarray) -> np.ndarray:
    count, height, width, channels = images_NHWC.shape
    if count == 1:
        return images_NHWC[0].copy()
    columns = int(np.ceil(np.sqrt(count)))
    rows = -(-count // columns)
    grid = np.zeros((rows * columns, height, width, channels), np.uint8)
    grid[:count] = images_NHWC
    grid = grid.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width, channels)


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8[H, W, C] with 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) channels.

    Source: Portable Network Graphics (PNG) Specification, W3C, 2003; filter 0 for each row.
    """
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPE[channels], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 3)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body
