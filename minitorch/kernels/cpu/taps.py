"""Vector code for sums over the taps of a window, for numbers that lie side by side.

Where the numbers that neighbouring outputs need for a tap are neighbours too, eight vectors of
outputs stay in registers while the taps go by, or nine taps while the outputs do. A vector has 256
bits. float32 and float64; arrays have one axis, and nothing is checked.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from ..plane_plan import TAPS
from .instructions import INT32, INT64, Vectors, address_of, gep, load_index, repeat
from .kernel import intrinsic

VECTORS = 8  # of outputs
BEST = 4  # vectors of maxima, each with one of places


@intrinsic
def sum_over_taps(context, source, at, shifts, first, count, factors, start, out, to, add):  # type: ignore[no-untyped-def]
    """out[to + j] = start + Σ_t factors[first + t] · source[at + shifts[first + t] + j].

    For eight vectors of j and t < count; with `add`, `out` itself is the start.
    """
    n = types.int64
    signature = types.void(source, n, shifts, n, n, factors, source.dtype, out, n, types.boolean)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Vectors(builder, signature.args[0])
        places = [address_of(context, builder, kinds[i], args[i], args[3]) for i in (2, 5)]
        begin = address_of(context, builder, kinds[0], args[0], args[1])

        def tap(shift: Any, factor: Any, *sums: Any) -> list[Any]:
            line, many = gep(builder, begin, load_index(builder, shift, 0)), builder.load(factor)
            many = lanes.many(many)
            news = [
                lanes.plus_product(old, many, lanes.load(gep(builder, line, v * lanes.count)))
                for v, old in enumerate(sums)
            ]
            return [gep(builder, shift, 1), gep(builder, factor, 1), *news]

        target = address_of(context, builder, kinds[7], args[7], args[8])
        ends, start = [gep(builder, target, v * lanes.count) for v in range(VECTORS)], args[6]
        starts = [builder.select(args[9], lanes.load(end), lanes.many(start)) for end in ends]
        _, _, *sums = repeat(builder, args[4], [*places, *starts], tap)
        for total, end in zip(sums, ends, strict=True):
            lanes.store(total, end)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def sums_of_taps(context, source, shifts, first, other, count, sums, to):  # type: ignore[no-untyped-def]
    """sums[to + k·lanes …] += Σ_v other[v] · source[shifts[first + k] + v] for nine taps k.

    For `count` vectors v.
    """
    n = types.int64
    signature = types.void(source, shifts, n, other, n, sums, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Vectors(builder, signature.args[0])
        begin = address_of(context, builder, kinds[0], args[0], INT64(0))
        shift = address_of(context, builder, kinds[1], args[1], args[2])
        lines = [gep(builder, begin, load_index(builder, shift, k)) for k in range(TAPS)]
        factors = address_of(context, builder, kinds[3], args[3], INT64(0))
        target = address_of(context, builder, kinds[5], args[5], args[6])
        places = [gep(builder, target, k * lanes.count) for k in range(TAPS)]

        def vector(v: Any, *sums: Any) -> list[Any]:
            factor = lanes.load(gep(builder, factors, v))
            news = [
                lanes.plus_product(old, factor, lanes.load(gep(builder, line, v)))
                for old, line in zip(sums, lines, strict=True)
            ]
            return [builder.add(v, INT64(lanes.count)), *news]

        olds = [lanes.load(place) for place in places]
        _, *news = repeat(builder, args[4], [INT64(0), *olds], vector)
        for total, place in zip(news, places, strict=True):
            lanes.store(total, place)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def best_over_taps(context, source, at, shifts, count, starts, out, found, to):  # type: ignore[no-untyped-def]
    """out[to + j] = max_t source[at + shifts[t] + j], and found[to + j] which t it is.

    For four vectors of j and t < count. The first of equal ones wins, and NaN; where all are -inf
    starts[to + j] stands in `found`. `starts` is int32, `found` uint16.
    """
    n = types.int64
    signature = types.void(source, n, shifts, n, starts, out, found, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Vectors(builder, signature.args[0])
        begin = address_of(context, builder, kinds[0], args[0], args[1])
        shift = address_of(context, builder, kinds[2], args[2], INT64(0))
        first, target, places = (
            address_of(context, builder, kinds[i], args[i], args[7]) for i in (4, 5, 6)
        )
        ends = [INT64(v * lanes.count) for v in range(BEST)]
        wide, narrow = (ir.VectorType(ir.IntType(bits), lanes.count) for bits in (32, 16))

        def tap(shift: Any, number: Any, *olds: Any) -> list[Any]:
            line, many = gep(builder, begin, load_index(builder, shift, 0)), lanes.many(number)
            bests, winners = [], []
            for end, best, winner in zip(ends, olds[:BEST], olds[BEST:], strict=True):
                value = lanes.load(gep(builder, line, end))
                wins = builder.fcmp_unordered(">", value, best)
                wins = builder.and_(wins, builder.fcmp_ordered("ord", best, best))
                bests.append(builder.select(wins, value, best))
                winners.append(builder.select(wins, many, winner))
            return [gep(builder, shift, 1), builder.add(number, INT32(1)), *bests, *winners]

        lowest = ir.Constant(lanes.kind, [float("-inf")] * lanes.count)
        numbers = [lanes.load(gep(builder, first, end), wide) for end in ends]
        given = [shift, INT32(0), *[lowest] * BEST, *numbers]
        _, _, *news = repeat(builder, args[3], given, tap)
        for end, best, winner in zip(ends, news[:BEST], news[BEST:], strict=True):
            lanes.store(best, gep(builder, target, end))
            place = builder.bitcast(gep(builder, places, end), narrow.as_pointer())
            builder.store(builder.trunc(winner, narrow), place).align = 2
        return context.get_dummy_value()

    return signature, code
