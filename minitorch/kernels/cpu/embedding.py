"""Adding rows to a table by number, in parallel over blocks of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel

_COLUMNS = 64


@kernel()
def _add_rows(first, last, out, index, rows):  # type: ignore[no-untyped-def]
    n, width = rows.shape
    for block in range(first, last):
        start, stop = block * _COLUMNS, min(width, (block + 1) * _COLUMNS)
        for i in range(n):
            target = index[i]
            for j in range(start, stop):
                out[target, j] += rows[i, j]


def add_rows(out: Any, index: Any, rows: Any) -> None:
    """`out[index[i]] += rows[i]` for every i, in the order of i."""
    blocks = -(-rows.shape[1] // _COLUMNS)
    _add_rows(blocks, out, np.ascontiguousarray(index, np.int64), np.ascontiguousarray(rows))
