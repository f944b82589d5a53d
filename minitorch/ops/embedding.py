"""Embedding: rows of a table by number, in one node; the gradient adds up rows used twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import backend
from ..kernels import load_for
from .primitive import Primitive


def _lookup_array(table: Any, *, index: Any, padding: int | None, rows: int, scale: Any) -> Any:
    if type(table) is np.ndarray and table.flags.c_contiguous:
        return table.take(index, 0)  # copies row by row
    return table[index]


def _lookup_rule(g: Any, *, index: Any, padding: int | None, rows: int, scale: Any) -> Any:
    return collect(g, index=index, padding=padding, rows=rows, scale=scale)


def _collect_array(g: Any, *, index: Any, padding: int | None, rows: int, scale: Any) -> Any:
    width = g.shape[-1] if g.ndim else 1
    flat, values = index.reshape(-1), g.reshape(index.size, width)
    if scale is not None:
        values = values * scale.reshape(-1, 1)
    xp = backend.namespace(g)
    out = xp.zeros((rows, width), g.dtype)
    kernels = load_for("embedding", g)
    if kernels is not None:
        kernels.add_rows(out, flat, values)
    else:
        xp.add.at(out, flat, values)
    if padding is not None:
        out[padding] = 0
    return out


def _collect_rule(g: Any, *, index: Any, padding: int | None, rows: int, scale: Any) -> Any:
    y = lookup(g, index=index, padding=padding, rows=rows, scale=None)
    if scale is not None:
        y = y * scale[..., None]
    if padding is None:
        return y
    return y * backend.namespace(index).asarray(index != padding)[..., None].astype(np.float32)


lookup = Primitive("embedding", _lookup_array, (_lookup_rule,))
"""`lookup(table, *, index, padding, rows, scale)`: `index` is an integer array, `rows` is
len(table); the gradient of row `padding` is 0, the others are multiplied with `scale`, f[index]."""
collect = Primitive("embedding_backward", _collect_array, (_collect_rule,))
"""`collect(values, *, index, padding, rows, scale)`: adds each value to the row of its number."""
