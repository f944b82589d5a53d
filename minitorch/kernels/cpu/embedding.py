"""Adding rows to a table by number, in parallel over blocks of columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel

_COLUMNS = 64


@kernel()
def _add_rows(first, last, out, index, rows):  # type: ignore[no-untyped-def]
    for block in range(first, last):
        start, stop = block * _COLUMNS, (block + 1) * _COLUMNS
        for i in range(len(rows)):
            line, total = rows[i, start:stop], out[index[i], start:stop]
            for j in range(len(total)):
                total[j] += line[j]


def add_rows(out: Any, index: Any, rows: Any) -> None:
    """`out[index[i]] += rows[i]` for every i, in the order of i."""
    blocks = -(-rows.shape[1] // _COLUMNS)
    _add_rows(blocks, out, np.ascontiguousarray(index, np.int64), np.ascontiguousarray(rows))
