"""What recurrent layers share: products with weights in panels, and who goes through what.

A step multiplies with weights that were put in panels once for the sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend.memory import address
from .. import threads
from .kernel import inlined
from .vector import COLUMNS, FEW_ROWS, ROWS, multiply_four, multiply_six

_ITEMSIZE = 4
_PAGE = 4096  # bytes
_TERMS = 256  # of a panel of weights, which stay in the first cache for all rows


@inlined
def take(hidden, h, start, rows):  # type: ignore[no-untyped-def]
    """Rows of `h` from `start` on, in the first rows of `hidden`."""
    for r in range(rows):
        for j in range(h.shape[1]):
            hidden[r, j] = h[start + r, j]


@inlined
def give(hidden, h, start, rows):  # type: ignore[no-untyped-def]
    """The first rows of `hidden`, back to their place in `h`."""
    for r in range(rows):
        for j in range(h.shape[1]):
            h[start + r, j] = hidden[r, j]


@inlined
def multiply(a, panels, start, start_step, out, out_step, rows, columns):  # type: ignore[no-untyped-def]
    """out = start + a @ weights; BLAS would put the weights in order for each such product.

    Args:
        a: f32[R, K or more] in one piece, with as many rows as whole tiles have.
        panels: The weights, as `panels_of` puts them.
        start: Address of what is added to; may be `out`.
        start_step: Bytes from one row of it to the next.
        out: Address of the result.
        out_step: Bytes from one row of it to the next.
        rows: How many rows there are.
        columns: How many columns there are.
    """
    k, step = panels.shape[1], _ITEMSIZE * a.shape[1]
    for t in range(0, k, _TERMS):
        for p in range(len(panels)):
            b = panels.ctypes.data + _ITEMSIZE * COLUMNS * (p * k + t)
            have, terms = columns - p * COLUMNS, min(_TERMS, k - t)
            for r in range(0, rows, ROWS):
                left = a.ctypes.data + r * step + _ITEMSIZE * t
                old = (start if t == 0 else out) + _ITEMSIZE * COLUMNS * p
                old_step = start_step if t == 0 else out_step
                old += r * old_step
                new = out + r * out_step + _ITEMSIZE * COLUMNS * p
                if rows - r > FEW_ROWS:
                    multiply_six(
                        *(left, step, _ITEMSIZE, b, terms, old, old_step),
                        *(new, out_step, rows - r, have),
                    )
                else:
                    multiply_four(
                        *(left, step, _ITEMSIZE, b, terms, old, old_step),
                        *(new, out_step, rows - r, have),
                    )


def panels_of(weights: Any) -> Any:
    """weights_KN as f32[⌈N / COLUMNS⌉, K, COLUMNS], filled up with zeros."""
    k, n = weights.shape
    whole, rest = divmod(n, COLUMNS)
    out = (np.zeros if rest else np.empty)((whole + (rest > 0), k, COLUMNS), np.float32)
    out[:whole] = weights[:, : n - rest].reshape(k, whole, COLUMNS).swapaxes(0, 1)
    if rest:
        out[whole, :, :rest] = weights[:, n - rest :]
    return out


def spaced(width: int) -> int:
    """Numbers from one row of `width` numbers to the next, which do not lie whole pages apart.

    Else a step's rows would lie in the same few sets of the first cache. With gaps of whole lines,
    64 rows, as a sequence may have, would still be whole pages.
    """
    return width + (COLUMNS + COLUMNS // 2 if _ITEMSIZE * width % _PAGE == 0 else 0)


def whole_rows(a: Any) -> Any:
    """The wider rows that those of `a` begin, as `spaced` has them, in one piece."""
    wide = a.base
    known = type(wide) is np.ndarray and wide.ndim == 2 and wide.flags.c_contiguous
    if known and wide.strides == a.strides and len(wide) == len(a):
        if address(wide) == address(a):
            return wide
    return a


def shares(batch: int) -> tuple[int, int, int]:
    """How many threads work, blocks of sequences, one for each, and sequences of a block."""
    many = min(threads.count(), -(-batch // FEW_ROWS))
    block = -(-batch // many)
    return many if many > 1 else 0, -(-batch // block), block
