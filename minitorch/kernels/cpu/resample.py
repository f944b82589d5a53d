"""Weighted sums along the last two axes, plane by plane: averages over windows, interpolation.

A line of the target is first summed over lines of the source, and then along itself; a zero stands
behind it for terms that a sum does not have. Only numbers that have a weight are multiplied, so
that what is not finite stays in the sums that it belongs to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from .instructions import INT32, INT64, VECTOR_BYTES, Vectors, address_of, gep, load_index, repeat
from .kernel import intrinsic, kernel
from .lines import add_line
from .memory import clear, copy


@intrinsic
def _sum_places(context, line, places, values, at, apart, terms, out):  # type: ignore[no-untyped-def]
    """out[at + i] = Σ_t values[at + t · apart + i] · line[places[at + t · apart + i]].

    For a vector of i and t < terms.
    """
    n = types.int64
    signature = types.void(line, places, values, n, n, n, out)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Vectors(builder, signature.args[0])
        begin = address_of(context, builder, kinds[0], args[0], INT64(0))
        table, factors, target = (
            address_of(context, builder, kinds[i], args[i], args[3]) for i in (1, 2, 6)
        )

        def term(place: Any, total: Any) -> list[Any]:
            numbers = lanes.zero
            for i in range(lanes.count):
                where = load_index(builder, gep(builder, table, place), i)
                number = builder.load(gep(builder, begin, where))
                numbers = builder.insert_element(numbers, number, INT32(i))
            factor = lanes.load(gep(builder, factors, place))
            total = lanes.plus_product(total, numbers, factor)
            return [builder.add(place, args[4]), total]

        _, total = repeat(builder, args[5], [INT64(0), lanes.zero], term)
        lanes.store(total, target)
        return context.get_dummy_value()

    return signature, code


@kernel()
def _resample(first, last, x, y, sizes, starts, rows, factors, places, values):  # type: ignore[no-untyped-def]
    height, width, high, wide, apart, terms = sizes
    lanes = VECTOR_BYTES // x.itemsize
    line, out = np.empty(width + lanes, x.dtype), np.empty(apart, x.dtype)
    clear(line, 0, len(line))
    for p in range(first, last):
        for a in range(high):
            if starts[a] == starts[a + 1]:
                clear(line, 0, width)
            for e in range(starts[a], starts[a + 1]):
                source = (p * height + rows[e]) * width
                add_line(x, source, width, factors[e], line, 0, e > starts[a])
            for b in range(0, wide, lanes):
                _sum_places(line, places, values, b, apart, terms, out)
            copy(out, 0, y, (p * high + a) * wide, wide)


def resample(x: Any, down: Any, across: Any) -> Any:
    """y[p] = D x[p] Aᵀ for x_PHW.

    Args:
        x: float, in one piece.
        down: (starts, rows, factors): row a of D has factors[starts[a]:starts[a + 1]].
        across: (wide, places_TB, values_TB): row b < wide of A has values[:, b] at places[:, b], of
            which W is for terms that it does not have; B is a multiple of 8.
    """
    starts, rows, factors = down
    wide, places, values = across
    (planes, height, width), high, (terms, apart) = x.shape, len(starts) - 1, values.shape
    y = np.empty((planes, high, wide), x.dtype)
    sizes = (height, width, high, wide, apart, terms)
    tables = (starts, rows, factors, places.reshape(-1), values.reshape(-1))
    _resample(planes, x.reshape(-1), y.reshape(-1), sizes, *tables)
    return y
