"""Vector code for sums over the taps of a window, for numbers that lie side by side.

Where the numbers that neighbouring outputs need for a tap are neighbours too, eight vectors of
outputs stay in registers while the taps go by, or nine taps while the outputs do. A vector has 256
bits. float32 and float64; arrays have one axis, and nothing is checked.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .kernel import intrinsic
from .vector import _INT32, _INT64, _at, _call, _index, _pointer, _repeat

VECTORS = 8  # of outputs
TAPS = 9  # of a gradient
BEST = 4  # vectors of maxima, each with one of places
VECTOR_BYTES = 32
_FUSED = ("contract",)  # a product and a sum may become one instruction


class Lanes:
    """Vectors of a type of numbers."""

    def __init__(self, builder: Any, kind: Any) -> None:
        self.builder, self.itemsize = builder, kind.dtype.bitwidth // 8
        self.count = VECTOR_BYTES // self.itemsize
        self.number = ir.FloatType() if self.itemsize == 4 else ir.DoubleType()
        self.kind = ir.VectorType(self.number, self.count)
        self.zero = ir.Constant(self.kind, [0.0] * self.count)

    def load(self, pointer: Any, kind: Any = None) -> Any:
        kind = kind or self.kind
        vector = self.builder.load(self.builder.bitcast(pointer, kind.as_pointer()))
        vector.align = self.itemsize if kind is self.kind else kind.element.width // 8
        return vector

    def store(self, vector: Any, pointer: Any) -> None:
        place = self.builder.bitcast(pointer, self.kind.as_pointer())
        self.builder.store(vector, place).align = self.itemsize

    def many(self, number: Any) -> Any:
        """A vector of one number."""
        none = ir.Constant(ir.VectorType(number.type, self.count), ir.Undefined)
        first = self.builder.insert_element(none, number, _INT32(0))
        order = ir.Constant(ir.VectorType(_INT32, self.count), [0] * self.count)
        return self.builder.shuffle_vector(first, none, order)

    def plus_product(self, total: Any, a: Any, b: Any) -> Any:
        return self.builder.fadd(self.builder.fmul(a, b, flags=_FUSED), total, flags=_FUSED)


@intrinsic
def sum_over_taps(context, source, at, shifts, first, count, factors, start, out, to, add):  # type: ignore[no-untyped-def]
    """out[to + j] = start + Σ_t factors[first + t] · source[at + shifts[first + t] + j].

    For eight vectors of j and t < count; with `add`, `out` itself is the start.
    """
    n = types.int64
    signature = types.void(source, n, shifts, n, n, factors, source.dtype, out, n, types.boolean)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Lanes(builder, signature.args[0])
        places = [_pointer(context, builder, kinds[i], args[i], args[3]) for i in (2, 5)]
        begin = _pointer(context, builder, kinds[0], args[0], args[1])

        def tap(shift: Any, factor: Any, *sums: Any) -> list[Any]:
            line, many = _at(builder, begin, _index(builder, shift, 0)), builder.load(factor)
            many = lanes.many(many)
            news = [
                lanes.plus_product(old, many, lanes.load(_at(builder, line, v * lanes.count)))
                for v, old in enumerate(sums)
            ]
            return [_at(builder, shift, 1), _at(builder, factor, 1), *news]

        target = _pointer(context, builder, kinds[7], args[7], args[8])
        ends, start = [_at(builder, target, v * lanes.count) for v in range(VECTORS)], args[6]
        starts = [builder.select(args[9], lanes.load(end), lanes.many(start)) for end in ends]
        _, _, *sums = _repeat(builder, args[4], [*places, *starts], tap)
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
        kinds, lanes = signature.args, Lanes(builder, signature.args[0])
        begin = _pointer(context, builder, kinds[0], args[0], _INT64(0))
        shift = _pointer(context, builder, kinds[1], args[1], args[2])
        lines = [_at(builder, begin, _index(builder, shift, k)) for k in range(TAPS)]
        factors = _pointer(context, builder, kinds[3], args[3], _INT64(0))
        target = _pointer(context, builder, kinds[5], args[5], args[6])
        places = [_at(builder, target, k * lanes.count) for k in range(TAPS)]

        def vector(v: Any, *sums: Any) -> list[Any]:
            factor = lanes.load(_at(builder, factors, v))
            news = [
                lanes.plus_product(old, factor, lanes.load(_at(builder, line, v)))
                for old, line in zip(sums, lines, strict=True)
            ]
            return [builder.add(v, _INT64(lanes.count)), *news]

        olds = [lanes.load(place) for place in places]
        _, *news = _repeat(builder, args[4], [_INT64(0), *olds], vector)
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
        kinds, lanes = signature.args, Lanes(builder, signature.args[0])
        begin = _pointer(context, builder, kinds[0], args[0], args[1])
        shift = _pointer(context, builder, kinds[2], args[2], _INT64(0))
        first, target, places = (
            _pointer(context, builder, kinds[i], args[i], args[7]) for i in (4, 5, 6)
        )
        ends = [_INT64(v * lanes.count) for v in range(BEST)]
        wide, narrow = (ir.VectorType(ir.IntType(bits), lanes.count) for bits in (32, 16))

        def tap(shift: Any, number: Any, *olds: Any) -> list[Any]:
            line, many = _at(builder, begin, _index(builder, shift, 0)), lanes.many(number)
            bests, winners = [], []
            for end, best, winner in zip(ends, olds[:BEST], olds[BEST:], strict=True):
                value = lanes.load(_at(builder, line, end))
                wins = builder.fcmp_unordered(">", value, best)
                wins = builder.and_(wins, builder.fcmp_ordered("ord", best, best))
                bests.append(builder.select(wins, value, best))
                winners.append(builder.select(wins, many, winner))
            return [_at(builder, shift, 1), builder.add(number, _INT32(1)), *bests, *winners]

        lowest = ir.Constant(lanes.kind, [float("-inf")] * lanes.count)
        numbers = [lanes.load(_at(builder, first, end), wide) for end in ends]
        given = [shift, _INT32(0), *[lowest] * BEST, *numbers]
        _, _, *news = _repeat(builder, args[3], given, tap)
        for end, best, winner in zip(ends, news[:BEST], news[BEST:], strict=True):
            lanes.store(best, _at(builder, target, end))
            place = builder.bitcast(_at(builder, places, end), narrow.as_pointer())
            builder.store(builder.trunc(winner, narrow), place).align = 2
        return context.get_dummy_value()

    return signature, code


@intrinsic
def take_pairs(context, source, at, out, to):  # type: ignore[no-untyped-def]
    """out[to + i] = source[at + 2i] for a vector of i; nothing behind the last one is read."""
    n = types.int64
    signature = types.void(source, n, out, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Lanes(builder, signature.args[0])
        begin = _pointer(context, builder, kinds[0], args[0], args[1])
        halves = [lanes.load(_at(builder, begin, start)) for start in (0, lanes.count - 1)]
        near = list(range(0, lanes.count, 2))
        places = near + [lanes.count + 1 + k for k in near]
        order = ir.Constant(ir.VectorType(_INT32, lanes.count), places)
        vector = builder.shuffle_vector(*halves, order)
        lanes.store(vector, _pointer(context, builder, kinds[2], args[2], args[3]))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def put_pairs(context, source, at, other, out, to):  # type: ignore[no-untyped-def]
    """out[to + 2i] = source[at + i] and out[to + 2i + 1] = source[other + i] for a vector of i."""
    n = types.int64
    signature = types.void(source, n, n, out, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Lanes(builder, signature.args[0])
        both = [lanes.load(_pointer(context, builder, kinds[0], args[0], at)) for at in args[1:3]]
        target = _pointer(context, builder, kinds[3], args[3], args[4])
        for start in (0, lanes.count // 2):
            near = range(start, start + lanes.count // 2)
            places = [place for k in near for place in (k, lanes.count + k)]
            order = ir.Constant(ir.VectorType(_INT32, lanes.count), places)
            vector = builder.shuffle_vector(*both, order)
            lanes.store(vector, _at(builder, target, 2 * start))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def add_line(context, source, at, count, factor, line, to, add):  # type: ignore[no-untyped-def]
    """line[to + i] (+)= factor · source[at + i] for i < count.

    The rest of the last vector is written as well: to zeros, or zeros are added.
    """
    n = types.int64
    signature = types.void(source, n, n, source.dtype, line, n, types.boolean)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Lanes(builder, signature.args[0])
        begin = _pointer(context, builder, kinds[0], args[0], args[1])
        target = _pointer(context, builder, kinds[4], args[4], args[5])
        many, width = lanes.many(args[3]), _INT64(lanes.count)
        name = f"llvm.masked.load.v{lanes.count}f{8 * lanes.itemsize}.p0"
        places = ir.Constant(ir.VectorType(_INT64, lanes.count), list(range(lanes.count)))

        def vector(i: Any, left: Any) -> list[Any]:
            mask = builder.icmp_signed("<", places, lanes.many(left))
            place = builder.bitcast(_at(builder, begin, i), lanes.kind.as_pointer())
            given = [place, _INT32(lanes.itemsize), mask, lanes.zero]
            numbers = _call(builder, name, lanes.kind, given)
            end = _at(builder, target, i)
            old = builder.select(args[6], lanes.load(end), lanes.zero)
            lanes.store(lanes.plus_product(old, numbers, many), end)
            return [builder.add(i, width), builder.sub(left, width)]

        times = builder.sdiv(builder.add(args[2], _INT64(lanes.count - 1)), width)
        _repeat(builder, times, [_INT64(0), args[2]], vector)
        return context.get_dummy_value()

    return signature, code
