"""Products of matrices, cut into blocks that threads take one by one.

Large ones of float32 have bodies of their own (`panels.py`); blocks of the others are OpenBLAS's,
where NumPy has it. The cut depends on the sizes alone, so that results do not depend on the number
of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import threads
from .blas import available, gemm
from .kernel import kernel
from .panels import Jobs, Plan, zeros

# A product of so many multiplications is cut into so many blocks.
_BLOCKS = ((1 << 28, 16), (1 << 26, 8), (1 << 24, 4), (1 << 21, 2))
_LEAST = 48  # rows and columns that a block has at least
_STEP = 16  # blocks begin at multiples of what a core multiplies at once


@kernel()
def _product(first, last, c, a, b, bias, turn_a, turn_b, parts_m, parts_n):  # type: ignore[no-untyped-def]
    m, n = c.shape
    k = a.shape[0] if turn_a else a.shape[1]
    lda, ldb, size = a.shape[1], b.shape[1], a.itemsize
    one = c.dtype.type(1)
    for block in range(first, last):
        i, j = block // parts_n, block % parts_n
        top, left = m * i // parts_m // _STEP * _STEP, n * j // parts_n // _STEP * _STEP
        end = m if i + 1 == parts_m else m * (i + 1) // parts_m // _STEP * _STEP
        right = n if j + 1 == parts_n else n * (j + 1) // parts_n // _STEP * _STEP
        keep = 0
        if bias.size:
            keep = 1
            for r in range(top, end):
                for q in range(left, right):
                    c[r, q] = bias[q]
        from_a = a.ctypes.data + size * (top if turn_a else top * lda)
        from_b = b.ctypes.data + size * (left * ldb if turn_b else left)
        to = c.ctypes.data + size * (top * n + left)
        rows, columns = end - top, right - left
        gemm(turn_a, turn_b, rows, columns, k, one, from_a, lda, from_b, ldb, keep, to, n)


@kernel()
def _batched(first, last, c, a, b, turn_a, turn_b):  # type: ignore[no-untyped-def]
    m, n = c.shape[1:]
    k = a.shape[1] if turn_a else a.shape[2]
    lda, ldb, size = a.shape[2], b.shape[2], a.itemsize
    one = c.dtype.type(1)
    for i in range(first, last):
        from_a = a.ctypes.data + size * a.shape[1] * lda * i
        from_b = b.ctypes.data + size * b.shape[1] * ldb * i
        to = c.ctypes.data + size * m * n * i
        gemm(turn_a, turn_b, m, n, k, one, from_a, lda, from_b, ldb, 0, to, n)


@kernel()
def _column_sums(first, last, x, out):  # type: ignore[no-untyped-def]
    for block in range(first, last):
        start, stop = block * _COLUMNS, min(len(out), (block + 1) * _COLUMNS)
        for j in range(start, stop):
            out[j] = 0
        for i in range(len(x)):
            for j in range(start, stop):
                out[j] += x[i, j]


_F32 = np.dtype(np.float32)
_COLUMNS = 64
# Multiplications of one float32 product from which panels of our own pay: of one with many rows,
# which use what was copied often, and of any.
_MANY_ROWS, _PANELS_FROM, _PANELS_FROM_FEW = 256, 1 << 23, 1 << 25


def _in_panels(m: int, k: int, n: int) -> bool:
    """Whether a product of float32 matrices of these sizes is computed in panels."""
    return m * k * n >= (_PANELS_FROM if m >= _MANY_ROWS else _PANELS_FROM_FEW) or not available


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


def takes(dtype: np.dtype[Any]) -> bool:
    """Whether there are bodies for this dtype."""
    return dtype.char == "f" or (available and dtype.char == "d")


def product(a: Any, b: Any, bias: Any = None) -> Any:
    """`a_MK @ b_KN`, and `+ bias_N`."""
    if a.dtype.char == "f" and _in_panels(a.shape[0], a.shape[1], b.shape[1]):
        return _product_f32(a, b, bias)
    (a, turn_a), (b, turn_b) = _lying(a), _lying(b)
    m, k = a.shape[::-1] if turn_a else a.shape
    n = b.shape[0] if turn_b else b.shape[1]
    c = np.empty((m, n), a.dtype)
    bias = np.empty(0, a.dtype) if bias is None else np.ascontiguousarray(bias)
    parts_m, parts_n = _parts(m, n, k)
    parts = parts_m * parts_n
    workers = threads.count() if parts > 1 else 0
    _product.share(workers, parts, c, a, b, bias, turn_a, turn_b, parts_m, parts_n)
    return c


def _product_f32(a: Any, b: Any, bias: Any = None) -> Any:
    c = np.empty((*a.shape[:-1], b.shape[-1]), np.float32)
    if not a.shape[-1]:
        c[...] = 0 if bias is None else bias
    elif c.size:
        jobs = Jobs()
        jobs.add_product(c, a, b, None if bias is None else np.ascontiguousarray(bias))
        jobs.compute()
    return c


def batched(a: Any, b: Any) -> Any:
    """`a_BMK @ b_BKN`."""
    if a.dtype.char == "f" and _in_panels(a.shape[1], a.shape[2], b.shape[2]):
        return _product_f32(a, b)
    (a, turn_a), (b, turn_b) = _lying(a), _lying(b)
    m, n = a.shape[2 if turn_a else 1], b.shape[1 if turn_b else 2]
    c = np.empty((len(a), m, n), a.dtype)
    _batched.share(threads.count(), len(a), c, a, b, turn_a, turn_b)
    return c


@functools.lru_cache(1024)
def _linear_plan(m: int, n: int, k: int) -> Plan | None:
    """`x_MK @ w_NK.T` of matrices in one piece; None where panels do not pay."""
    if not _in_panels(m, k, n):
        return None
    return Plan([((m, k), (4 * k, 4), (k, n), (4, 4 * k), (4 * n, 4), 0)])


def linear(x: Any, w: Any, bias: Any) -> Any:
    """`x_…K @ w_NK.T + bias_N`, none of them empty; the bias may be None."""
    n, k = w.shape
    plan = _linear_plan(x.size // k, n, k) if x.dtype.char == "f" else None
    if plan is None or not x.flags.c_contiguous or not w.flags.c_contiguous:
        return product(x.reshape(-1, k), w.T, bias).reshape(*x.shape[:-1], n)
    y = np.empty((*x.shape[:-1], n), _F32)
    start = zeros(n) if bias is None else np.ascontiguousarray(bias)
    plan.compute(x, w, y, start)
    return y


@functools.lru_cache(1024)
def _gradients_plan(m: int, n: int, k: int, dx: bool, dw: bool, db: bool) -> Plan | None:
    """Some gradients of `x_MK @ w_NK.T + bias_N`, likewise."""
    if not _in_panels(m, n, k):
        return None
    jobs = (
        (dx, ((m, n), (4 * n, 4), (n, k), (4 * k, 4), (4 * k, 4), 0)),
        (dw, ((n, m), (4, 4 * n), (m, k), (4 * k, 4), (4 * k, 4), 0)),
        (db, (None, None, (m, n), (4 * n, 4), None, 0)),
    )
    return Plan([sizes for wanted, sizes in jobs if wanted])


def linear_gradients(g: Any, x: Any, w: Any, needs: Sequence[bool]) -> tuple[Any, Any, Any]:
    """The gradients of x_…K, w_NK and a bias_N from that of `x @ w.T + bias`.

    Args:
        g: f[…, N].
        x: f[…, K]; anything of its shape where `w` needs no gradient.
        w: f[N, K]; likewise. None of them is empty.
        needs: Which of the three are wanted, one at least; None stands for the others.
    """
    (n, k), (for_x, for_w, for_bias) = w.shape, needs
    plan = _gradients_plan(g.size // n, n, k, *needs) if g.dtype.char == "f" else None
    lying = g.flags.c_contiguous and (not for_x or w.flags.c_contiguous)
    if plan is None or not lying or (for_w and not x.flags.c_contiguous):
        dx, dw, db = _linear_gradients(g.reshape(-1, n), x.reshape(-1, k), w, needs)
        return None if dx is None else dx.reshape(x.shape), dw, db
    dx = dw = db = None
    arrays: list[Any] = []
    if for_x:
        dx = np.empty(x.shape, _F32)
        arrays += (g, w, dx, zeros(k))
    if for_w:
        dw = np.empty((n, k), _F32)
        arrays += (g, x, dw, zeros(k))
    if for_bias:
        db = np.empty(n, _F32)
        arrays += (g, db)
    plan.compute(*arrays)
    return dx, dw, db


def _linear_gradients(g: Any, x: Any, w: Any, needs: Sequence[bool]) -> tuple[Any, Any, Any]:
    """As `linear_gradients`, of g_MN and x_MK of any strides."""
    if g.dtype.char != "f" or not _in_panels(g.shape[0], g.shape[1], w.shape[1]):
        return (
            product(g, w) if needs[0] else None,
            product(g.T, x) if needs[1] else None,
            column_sums(g) if needs[2] else None,
        )
    dx = dw = db = None
    jobs = Jobs()
    if needs[0]:
        dx = np.empty(x.shape, _F32)
        jobs.add_product(dx, g, w)
    if needs[1]:
        dw = np.empty(w.shape, _F32)
        jobs.add_product(dw, g.T, x)
    if needs[2]:
        db = np.empty(w.shape[0], _F32)
        jobs.add_sums(db, g if g.strides[1] == g.itemsize else np.ascontiguousarray(g))
    jobs.compute()
    return dx, dw, db


def column_sums(x: Any) -> Any:
    """The sums of x_MN over M."""
    x, out = np.ascontiguousarray(x), np.empty(x.shape[1], x.dtype)
    if x.dtype == np.float32 and x.size:
        jobs = Jobs()
        jobs.add_sums(out, x)
        jobs.compute()
    else:
        _column_sums(-(-len(out) // _COLUMNS), x, out)
    return out


__all__ = ["batched", "column_sums", "linear", "linear_gradients", "product", "takes"]
