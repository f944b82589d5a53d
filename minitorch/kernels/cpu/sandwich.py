"""Small matrix products from both sides, `L d Lᵀ`, eight at a time: the transforms of Winograd.

The numbers of L are known when the code is made, so that zeros and ones cost nothing. L is given as
a list of factors, the first one applied first: sums that two of its rows share are formed once.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from .instructions import FUSED, INT64, address_of, gep
from .kernel import intrinsic
from .vector import VECTOR, WIDTH, load, store


def _factor(builder: Any, number: float, vector: Any) -> Any:
    return builder.fmul(vector, ir.Constant(VECTOR, [number] * WIDTH), flags=FUSED)


def _sum(builder: Any, row: np.ndarray, vectors: Sequence[Any]) -> Any:
    """Σ row[i] · vectors[i]; a row has an entry."""
    total: Any = None
    # An entry of 1 comes first, since it needs no operation there.
    for i in sorted(np.flatnonzero(row), key=lambda i: row[i] != 1):
        number, vector = float(row[i]), vectors[int(i)]
        if total is None:
            total = vector if number == 1 else _factor(builder, number, vector)
        elif abs(number) == 1:
            join = builder.fadd if number > 0 else builder.fsub
            total = join(total, vector, flags=FUSED)
        else:
            total = builder.fadd(_factor(builder, number, vector), total, flags=FUSED)
    return total


def _applied(builder: Any, factors: Sequence[np.ndarray], vectors: list[Any]) -> list[Any]:
    for factor in factors:
        vectors = [_sum(builder, row, vectors) for row in factor]
    return vectors


def _both_sides(builder: Any, factors: Sequence[np.ndarray], source: Any, steps: Any) -> Any:
    """The rows of L d Lᵀ, for d read from `source`."""
    size = factors[0].shape[1]
    down, across = ([builder.mul(step, INT64(i)) for i in range(size)] for step in steps)
    columns = []
    for j in range(size):
        places = [gep(builder, source, builder.add(down[i], across[j])) for i in range(size)]
        columns.append(_applied(builder, factors, [load(builder, place) for place in places]))
    return [_applied(builder, factors, list(row)) for row in zip(*columns, strict=True)]


def _stored(builder: Any, rows: Any, target: Any, steps: Any) -> None:
    for i, row in enumerate(rows):
        for j, vector in enumerate(row):
            down, across = (builder.mul(s, INT64(k)) for s, k in zip(steps, (i, j), strict=True))
            store(builder, vector, gep(builder, target, builder.add(down, across)))


def sandwich(*factors: np.ndarray) -> Any:
    """The intrinsic `(source, at, down, across, target, at, down, across)` for `L d Lᵀ`.

    Element (i, j) of d is the eight numbers from `at + i·down + j·across` on; so in the target.

    Args:
        factors: Matrices whose product, the last one leftmost, is L.
    """

    def body(context, source, at, down, across, target, to, to_down, to_across):  # type: ignore[no-untyped-def]
        n = types.int64
        signature = types.void(source, n, n, n, target, n, n, n)

        def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
            kinds = signature.args
            first = address_of(context, builder, kinds[0], args[0], args[1])
            rows = _both_sides(builder, factors, first, args[2:4])
            target = address_of(context, builder, kinds[4], args[4], args[5])
            _stored(builder, rows, target, args[6:8])
            return context.get_dummy_value()

        return signature, code

    return intrinsic(body)


def checked_sandwich(*factors: np.ndarray) -> Any:
    """As `sandwich`, with `bias, at, seen` behind: eight numbers to add, and eight to write.

    The numbers of `seen` are NaN from the first result on that is not finite.
    """

    def body(context, source, at, down, across, target, to, to_down, to_across, bias, first, seen):  # type: ignore[no-untyped-def]
        n = types.int64
        signature = types.void(source, n, n, n, target, n, n, n, bias, n, seen)

        def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
            kinds = signature.args
            first = address_of(context, builder, kinds[0], args[0], args[1])
            rows = _both_sides(builder, factors, first, args[2:4])
            bias = load(builder, address_of(context, builder, kinds[8], args[8], args[9]))
            rows = [[builder.fadd(vector, bias) for vector in row] for row in rows]
            target = address_of(context, builder, kinds[4], args[4], args[5])
            _stored(builder, rows, target, args[6:8])
            seen = address_of(context, builder, kinds[10], args[10], INT64(0))
            total = functools.reduce(builder.fadd, itertools.chain(*rows))
            nothing = _factor(builder, 0.0, total)
            store(builder, builder.fadd(load(builder, seen), nothing), seen)
            return context.get_dummy_value()

        return signature, code

    return intrinsic(body)
