"""Products of matrices, cut into blocks that threads take one by one.

The cut depends on the sizes alone, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from .. import threads
from .blas import available, gemm
from .compile import kernel, part
from .share import take_number

# A product of so many multiplications is cut into so many blocks.
_BLOCKS = ((1 << 28, 16), (1 << 26, 8), (1 << 24, 4), (1 << 21, 2))
_LEAST = 48  # rows and columns that a block has at least
_STEP = 16  # blocks begin at multiples of what a core multiplies at once


@part()
def _product_blocks(counter, c, a, b, bias, turn_a, turn_b, parts_m, parts_n):  # type: ignore[no-untyped-def]
    m, n = c.shape
    k = a.shape[0] if turn_a else a.shape[1]
    lda, ldb, size = a.shape[1], b.shape[1], a.itemsize
    one = c.dtype.type(1)
    while True:
        block = take_number(counter)
        if block >= parts_m * parts_n:
            break
        i, j = block // parts_n, block % parts_n
        top, left = m * i // parts_m // _STEP * _STEP, n * j // parts_n // _STEP * _STEP
        end = m if i + 1 == parts_m else m * (i + 1) // parts_m // _STEP * _STEP
        right = n if j + 1 == parts_n else n * (j + 1) // parts_n // _STEP * _STEP
        keep = 0
        if bias.size:
            keep = 1
            for r in range(top, end):
                c[r, left:right] = bias[left:right]
        from_a = a.ctypes.data + size * (top if turn_a else top * lda)
        from_b = b.ctypes.data + size * (left * ldb if turn_b else left)
        to = c.ctypes.data + size * (top * n + left)
        rows, columns = end - top, right - left
        gemm(turn_a, turn_b, rows, columns, k, one, from_a, lda, from_b, ldb, keep, to, n)


@kernel()
def _product(c, a, b, bias, turn_a, turn_b, parts_m, parts_n, workers):  # type: ignore[no-untyped-def]
    counter = np.zeros(1, np.int64)
    for _ in prange(workers):
        _product_blocks(counter, c, a, b, bias, turn_a, turn_b, parts_m, parts_n)


@part()
def _batched_blocks(counter, c, a, b, turn_a, turn_b):  # type: ignore[no-untyped-def]
    items, m, n = c.shape
    k = a.shape[1] if turn_a else a.shape[2]
    lda, ldb, size = a.shape[2], b.shape[2], a.itemsize
    one = c.dtype.type(1)
    while True:
        i = take_number(counter)
        if i >= items:
            break
        from_a = a.ctypes.data + size * a.shape[1] * lda * i
        from_b = b.ctypes.data + size * b.shape[1] * ldb * i
        to = c.ctypes.data + size * m * n * i
        gemm(turn_a, turn_b, m, n, k, one, from_a, lda, from_b, ldb, 0, to, n)


@kernel()
def _batched(c, a, b, turn_a, turn_b, workers):  # type: ignore[no-untyped-def]
    counter = np.zeros(1, np.int64)
    for _ in prange(workers):
        _batched_blocks(counter, c, a, b, turn_a, turn_b)


@kernel()
def _column_sums(x, out):  # type: ignore[no-untyped-def]
    rows, n = x.shape
    for block in prange((n + _COLUMNS - 1) // _COLUMNS):
        start, stop = block * _COLUMNS, min(n, (block + 1) * _COLUMNS)
        total = out[start:stop]
        total[:] = 0
        for i in range(rows):
            row = x[i, start:stop]
            for j in range(len(total)):
                total[j] += row[j]


_COLUMNS = 64


def _lying(a: Any) -> tuple[Any, bool]:
    """The matrices as rows in memory that may be written, and whether they lie transposed."""
    if not a.flags.writeable:
        a = a.copy()
    if a.flags.c_contiguous:
        return a, False
    turned = a.swapaxes(-1, -2)
    return (turned, True) if turned.flags.c_contiguous else (np.ascontiguousarray(a), False)


def _parts(m: int, n: int, k: int) -> tuple[int, int]:
    """Into how many blocks of rows and of columns a product is cut, as square as possible."""
    wanted = next((parts for work, parts in _BLOCKS if m * n * k >= work), 1)
    parts_m = parts_n = 1
    while parts_m * parts_n < wanted:
        # Rows are cut first: blocks of whole rows are written side by side.
        if 2 * m * parts_n >= n * parts_m and m >= 2 * _LEAST * parts_m:
            parts_m *= 2
        elif n >= 2 * _LEAST * parts_n:
            parts_n *= 2
        elif m >= 2 * _LEAST * parts_m:
            parts_m *= 2
        else:
            break
    return parts_m, parts_n


def product(a: Any, b: Any, bias: Any = None) -> Any:
    """`a_MK @ b_KN`, and `+ bias_N`."""
    (a, turn_a), (b, turn_b) = _lying(a), _lying(b)
    m, k = a.shape[::-1] if turn_a else a.shape
    n = b.shape[0] if turn_b else b.shape[1]
    c = np.empty((m, n), a.dtype)
    bias = np.empty(0, a.dtype) if bias is None else np.ascontiguousarray(bias)
    parts_m, parts_n = _parts(m, n, k)
    workers = min(threads.count(), parts_m * parts_n)
    _product.share(workers, c, a, b, bias, turn_a, turn_b, parts_m, parts_n)
    return c


def batched(a: Any, b: Any) -> Any:
    """`a_BMK @ b_BKN`."""
    (a, turn_a), (b, turn_b) = _lying(a), _lying(b)
    m, n = a.shape[2 if turn_a else 1], b.shape[1 if turn_b else 2]
    c = np.empty((len(a), m, n), a.dtype)
    workers = min(threads.count(), len(a))
    _batched.share(workers, c, a, b, turn_a, turn_b)
    return c


def column_sums(x: Any) -> Any:
    """The sums of x_MN over M."""
    out = np.empty(x.shape[1], x.dtype)
    _column_sums(np.ascontiguousarray(x), out)
    return out


__all__ = ["available", "batched", "column_sums", "product"]
