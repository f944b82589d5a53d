"""Vector code for lines of numbers: sums, every other number of a line and back.

float32 and float64; arrays have one axis, and nothing is checked. Plain copies are in `memory.py`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .instructions import (
    INT32,
    INT64,
    VECTOR_BYTES,
    Vectors,
    address_of,
    call_intrinsic,
    gep,
    repeat,
)
from .kernel import inlined, intrinsic
from .memory import copy


@intrinsic
def take_pairs(context, source, at, out, to):  # type: ignore[no-untyped-def]
    """out[to + i] = source[at + 2i] for a vector of i; nothing behind the last one is read."""
    n = types.int64
    signature = types.void(source, n, out, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Vectors(builder, signature.args[0])
        begin = address_of(context, builder, kinds[0], args[0], args[1])
        halves = [lanes.load(gep(builder, begin, start)) for start in (0, lanes.count - 1)]
        near = list(range(0, lanes.count, 2))
        places = near + [lanes.count + 1 + k for k in near]
        order = ir.Constant(ir.VectorType(INT32, lanes.count), places)
        vector = builder.shuffle_vector(*halves, order)
        lanes.store(vector, address_of(context, builder, kinds[2], args[2], args[3]))
        return context.get_dummy_value()

    return signature, code


@intrinsic
def put_pairs(context, source, at, other, out, to):  # type: ignore[no-untyped-def]
    """out[to + 2i] = source[at + i] and out[to + 2i + 1] = source[other + i] for a vector of i."""
    n = types.int64
    signature = types.void(source, n, n, out, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds, lanes = signature.args, Vectors(builder, signature.args[0])
        both = [lanes.load(address_of(context, builder, kinds[0], args[0], at)) for at in args[1:3]]
        target = address_of(context, builder, kinds[3], args[3], args[4])
        for start in (0, lanes.count // 2):
            near = range(start, start + lanes.count // 2)
            places = [place for k in near for place in (k, lanes.count + k)]
            order = ir.Constant(ir.VectorType(INT32, lanes.count), places)
            vector = builder.shuffle_vector(*both, order)
            lanes.store(vector, gep(builder, target, 2 * start))
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
        kinds, lanes = signature.args, Vectors(builder, signature.args[0])
        begin = address_of(context, builder, kinds[0], args[0], args[1])
        target = address_of(context, builder, kinds[4], args[4], args[5])
        many, width = lanes.many(args[3]), INT64(lanes.count)
        name = f"llvm.masked.load.v{lanes.count}f{8 * lanes.itemsize}.p0"
        places = ir.Constant(ir.VectorType(INT64, lanes.count), list(range(lanes.count)))

        def vector(i: Any, left: Any) -> list[Any]:
            mask = builder.icmp_signed("<", places, lanes.many(left))
            place = builder.bitcast(gep(builder, begin, i), lanes.kind.as_pointer())
            given = [place, INT32(lanes.itemsize), mask, lanes.zero]
            numbers = call_intrinsic(builder, name, lanes.kind, given)
            end = gep(builder, target, i)
            old = builder.select(args[6], lanes.load(end), lanes.zero)
            lanes.store(lanes.plus_product(old, numbers, many), end)
            return [builder.add(i, width), builder.sub(left, width)]

        times = builder.sdiv(builder.add(args[2], INT64(lanes.count - 1)), width)
        repeat(builder, times, [INT64(0), args[2]], vector)
        return context.get_dummy_value()

    return signature, code


@inlined
def take(source, at, step, out, to, count):  # type: ignore[no-untyped-def]
    """out[to + i] = source[at + i · step] for i < count."""
    lanes, done = VECTOR_BYTES // source.itemsize, 0
    if step == 1:
        copy(source, at, out, to, count)
        done = count
    elif step == 2 and count >= lanes:
        while done < count:
            done = min(done, count - lanes)
            take_pairs(source, at + 2 * done, out, to + done)
            done += lanes
    for i in range(done, count):
        out[to + i] = source[at + i * step]
