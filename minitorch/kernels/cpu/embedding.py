"""Adding rows to a table by number, each thread some of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import threads
from .kernel import PARALLEL_FROM, kernel

_LEAST = 64  # columns of a block


@kernel()
def _add_rows(first, last, out, index, rows, columns):  # type: ignore[no-untyped-def]
    for block in range(first, last):
        start, stop = block * columns, min((block + 1) * columns, out.shape[1])
        for i in range(len(rows)):
            line, total = rows[i, start:stop], out[index[i], start:stop]
            for j in range(len(total)):
                total[j] += line[j]


def add_rows(out: Any, index: Any, rows: Any) -> None:
    """`out[index[i]] += rows[i]` for every i, in the order of i.

    Args:
        out: f[U, N] in one piece.
        index: int[M], which rows of it.
        rows: f[M, N or more], of which the first columns are added.
    """
    workers = threads.count() if len(rows) * out.shape[1] >= PARALLEL_FROM else 0
    # Sums do not depend on how columns are shared; long pieces of rows come faster from memory.
    columns = max(_LEAST, -(-out.shape[1] // max(1, workers)))
    blocks = -(-out.shape[1] // columns)
    index, rows = np.ascontiguousarray(index, np.int64), np.ascontiguousarray(rows)
    _add_rows.share(workers, blocks, out, index, rows, columns)
