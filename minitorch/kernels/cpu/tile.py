"""The product of a few rows with weights that lie ready for it, in registers.

BLAS copies the weights into its own order for each product, which for a few rows costs more than
the product. A recurrent layer multiplies the same weights at every step, so they are put in order
once: in panels of `COLUMNS` columns, one row of a panel after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import register_jitable

from .compile import intrinsic

ROWS, COLUMNS = 4, 24  # of a tile: twelve vectors of sums, as many as AVX2's registers hold
_LANES = 8
_ITEMSIZE = 4
_FUSED = ("contract",)


@intrinsic
def _tile(typing_context, a, lda, panel, k, c, ldc):  # type: ignore[no-untyped-def]
    """`C_4x24 = A_4xK @ panel_Kx24` of float32 at addresses; K is at least 1."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        a, lda, panel, k, c, ldc = args
        number, integer = ir.FloatType(), ir.IntType(64)
        vector, order = ir.VectorType(number, _LANES), ir.VectorType(ir.IntType(32), _LANES)
        vectors = COLUMNS // _LANES

        def at(start: Any, index: Any, scale: int, kind: Any) -> Any:
            place = builder.add(start, builder.mul(index, integer(scale)))
            return builder.inttoptr(place, kind.as_pointer())

        lines = [builder.add(a, builder.mul(lda, integer(_ITEMSIZE * r))) for r in range(ROWS)]
        before = builder.block
        loop, done = builder.append_basic_block("tile"), builder.append_basic_block("tile.done")
        builder.branch(loop)
        builder.position_at_end(loop)
        i = builder.phi(integer)
        sums = [[builder.phi(vector) for _ in range(vectors)] for _ in range(ROWS)]
        row = [
            builder.load(
                at(builder.add(panel, integer(_ITEMSIZE * _LANES * j)), i, 4 * COLUMNS, vector),
                align=_ITEMSIZE,
            )
            for j in range(vectors)
        ]
        following = builder.add(i, integer(1))
        i.add_incoming(integer(0), before)
        i.add_incoming(following, loop)
        nowhere = ir.Constant(vector, ir.Undefined)
        for r in range(ROWS):
            value = builder.load(at(lines[r], i, _ITEMSIZE, number), align=_ITEMSIZE)
            first = builder.insert_element(nowhere, value, ir.IntType(32)(0))
            factor = builder.shuffle_vector(first, nowhere, ir.Constant(order, None))
            for j in range(vectors):
                term = builder.fmul(factor, row[j], flags=_FUSED)
                total = builder.fadd(sums[r][j], term, flags=_FUSED)
                sums[r][j].add_incoming(ir.Constant(vector, None), before)
                sums[r][j].add_incoming(total, loop)
                sums[r][j] = total
        builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
        builder.position_at_end(done)
        for r in range(ROWS):
            line = builder.add(c, builder.mul(ldc, integer(_ITEMSIZE * r)))
            for j in range(vectors):
                place = builder.add(line, integer(_ITEMSIZE * _LANES * j))
                to = builder.inttoptr(place, vector.as_pointer())
                builder.store(sums[r][j], to, align=_ITEMSIZE)
        return context.get_dummy_value()

    wide = types.int64
    return types.void(wide, wide, wide, wide, wide, wide), generate


@register_jitable
def multiply(a, panels, c, rows):  # type: ignore[no-untyped-def]
    """`c = a @ weights` for the first `rows` rows; both have room for a multiple of `ROWS`.

    Args:
        a: f32[R, K], contiguous.
        panels: The weights, as `panels_of` puts them.
        c: f32[R, panels · COLUMNS], contiguous.
        rows: How many rows count.
    """
    k, ldc = a.shape[1], c.shape[1]
    at_a, at_c, at_p = a.ctypes.data, c.ctypes.data, panels.ctypes.data
    for p in range(panels.shape[0]):
        panel = at_p + _ITEMSIZE * COLUMNS * k * p
        for r in range(0, rows, ROWS):
            _tile(
                at_a + _ITEMSIZE * k * r,
                k,
                panel,
                k,
                at_c + _ITEMSIZE * (ldc * r + COLUMNS * p),
                ldc,
            )


def panels_of(weights: Any) -> Any:
    """weights_KN as f32[⌈N / COLUMNS⌉, K, COLUMNS], filled up with zeros."""
    k, n = weights.shape
    count = -(-n // COLUMNS)
    out = np.zeros((count, k, COLUMNS), np.float32)
    whole = n // COLUMNS
    cut = whole * COLUMNS
    out[:whole] = weights[:, :cut].reshape(k, whole, COLUMNS).swapaxes(0, 1)
    if cut < n:
        out[whole, :, : n - cut] = weights[:, cut:]
    return out


__all__ = ["COLUMNS", "ROWS", "multiply", "panels_of"]
