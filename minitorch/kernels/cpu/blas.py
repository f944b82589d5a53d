"""Matrix products of NumPy's own OpenBLAS for compiled bodies, one thread each.

OpenBLAS has a pool of threads, numba's kernels have another; the idle threads of one spin while the
other works, and a step takes several times as long. So OpenBLAS keeps to one thread, its products
are called from the kernels' threads, and there is one pool.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from typing import Any

import llvmlite.binding
import numpy as np
from numba import types
from numba.extending import overload

from .. import threads

# Prefix and suffix of OpenBLAS's names: NumPy's wheels, then other builds.
_SPELLINGS = (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", ""))
_SYMBOLS = {"sgemm": "minitorch_sgemm", "dgemm": "minitorch_dgemm"}


def _connect() -> bool:
    """Makes the products known to the linker of compiled code; False if there is no OpenBLAS."""
    for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        try:
            library = ctypes.CDLL(importlib.import_module(name).__file__)
        except (ImportError, OSError, TypeError):
            continue
        for before, after in _SPELLINGS:
            if sys.platform == "darwin" and not after:
                continue  # numbers of 32 bits are passed in another way than those of 64 there
            products = [f"{before}cblas_{product}{after}" for product in _SYMBOLS]
            setter = f"{before}openblas_set_num_threads{after}"
            if all(hasattr(library, symbol) for symbol in (*products, setter)):
                for product, symbol in zip(products, _SYMBOLS.values(), strict=True):
                    address = ctypes.cast(getattr(library, product), ctypes.c_void_p).value
                    llvmlite.binding.add_symbol(symbol, address)
                getattr(library, setter)(1)
                threads.own_products()
                return True
    return False


def _declared(product: str, number: Any) -> Any:
    i, c, p = types.int64, types.int32, types.uintp
    arguments = (c, c, c, i, i, i, number, p, i, p, i, number, p, i)
    return types.ExternalFunction(_SYMBOLS[product], types.void(*arguments))


available = _connect()
_sgemm = _declared("sgemm", types.float32)
_dgemm = _declared("dgemm", types.float64)
# CBLAS's words for row-major, as it is, and transposed.
_ROWS, _PLAIN, _TURNED = np.int32(101), np.int32(111), np.int32(112)


def gemm(turn_a, turn_b, m, n, k, factor, a, lda, b, ldb, keep, c, ldc):  # type: ignore[no-untyped-def]
    """`C = factor · op(A) op(B) + keep · C` on rows at addresses; only for compiled bodies.

    Args:
        turn_a: Whether A lies transposed, as k rows of m.
        turn_b: Whether B lies transposed, as n rows of k.
        m: Rows of C.
        n: Columns of C.
        k: Length of the sums.
        factor: A float32 or float64, which tells the dtype of all.
        a: Address of A.
        lda: Numbers from one row of A, as it lies, to the next.
        b: Address of B.
        ldb: Likewise for B.
        keep: 0 or 1; with 0, C may hold anything before.
        c: Address of C.
        ldc: Likewise for C.
    """
    raise NotImplementedError("gemm runs in compiled bodies only")


@overload(gemm)
def _gemm(turn_a, turn_b, m, n, k, factor, a, lda, b, ldb, keep, c, ldc):  # type: ignore[no-untyped-def]
    product = _sgemm if factor == types.float32 else _dgemm

    def call(turn_a, turn_b, m, n, k, factor, a, lda, b, ldb, keep, c, ldc):  # type: ignore[no-untyped-def]
        first, second = _TURNED if turn_a else _PLAIN, _TURNED if turn_b else _PLAIN
        product(_ROWS, first, second, m, n, k, factor, a, lda, b, ldb, factor * 0 + keep, c, ldc)

    return call


__all__ = ["available", "gemm"]
