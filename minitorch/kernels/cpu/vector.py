"""Vector code that numba does not make of loops by itself, written as LLVM instructions.

`multiply_tile` is the inner loop of every matrix product here: 6 × 16 sums in registers. On two
256-bit multipliers it does eleven additions and multiplications of a possible sixteen and more a
cycle per lane, as BLAS does. `turn` transposes 8 × 8 numbers. Both take float32 arrays and
positions in them; nothing is checked.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from .compile import intrinsic

ROWS = 6
COLUMNS = 16
_WIDTH = 8
_VECTORS = COLUMNS // _WIDTH

_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, _WIDTH)
_NONE = ir.Constant(_VECTOR, ir.Undefined)
_FUSED = ("contract",)  # a product and a sum may become one instruction


def _at(builder: Any, pointer: Any, position: Any) -> Any:
    if isinstance(position, int):
        position = _INT64(position)
    return builder.gep(pointer, [position])


def _pointer(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> Any:
    """The address of an element of a one-dimensional array."""
    return _at(builder, context.make_array(kind)(context, builder, array).data, position)


def _load(builder: Any, pointer: Any) -> Any:
    vector = builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()))
    vector.align = 4
    return vector


def _store(builder: Any, vector: Any, pointer: Any) -> None:
    builder.store(vector, builder.bitcast(pointer, _VECTOR.as_pointer())).align = 4


def _shuffle(builder: Any, a: Any, b: Any, *places: int) -> Any:
    mask = ir.Constant(ir.VectorType(_INT32, _WIDTH), list(places))
    return builder.shuffle_vector(a, b, mask)


def _index(builder: Any, pointer: Any, position: Any) -> Any:
    return builder.sext(builder.load(_at(builder, pointer, position)), _INT64)


def _products(builder: Any, bases: Any, shifts: Any, b: Any, count: Any) -> list[list[Any]]:
    """The loop over `count`: the sums, one list of vectors a row."""
    zero = ir.Constant(_VECTOR, [0.0] * _WIDTH)
    entry = builder.block
    loop, done = builder.append_basic_block("tile"), builder.append_basic_block("tile.done")
    builder.cbranch(builder.icmp_signed(">", count, _INT64(0)), loop, done)
    builder.position_at_end(loop)
    t = builder.phi(_INT64)
    t.add_incoming(_INT64(0), entry)
    sums = [[builder.phi(_VECTOR) for _ in range(_VECTORS)] for _ in bases]
    shift = _index(builder, shifts, t)
    line = _at(builder, b, builder.mul(t, _INT64(COLUMNS)))
    right = [_load(builder, _at(builder, line, v * _WIDTH)) for v in range(_VECTORS)]
    news = []
    for base, row in zip(bases, sums, strict=True):
        left = builder.insert_element(_NONE, builder.load(_at(builder, base, shift)), _INT32(0))
        left = _shuffle(builder, left, _NONE, *[0] * _WIDTH)
        products = [builder.fmul(left, r, flags=_FUSED) for r in right]
        pairs = zip(products, row, strict=True)
        news.append([builder.fadd(p, a, flags=_FUSED) for p, a in pairs])
    following = builder.add(t, _INT64(1))
    t.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
    builder.position_at_end(done)
    results = []
    for row, new in zip(sums, news, strict=True):
        results.append([builder.phi(_VECTOR) for _ in row])
        for a, n, result in zip(row, new, results[-1], strict=True):
            a.add_incoming(zero, entry)
            a.add_incoming(n, loop)
            result.add_incoming(zero, entry)
            result.add_incoming(n, loop)
    return results


@intrinsic
def multiply_tile(  # type: ignore[no-untyped-def]
    context, a, rows, row, shifts, shift, count, b, b_at, out, out_at, add
):
    """out[r, :] (+)= Σ_t a[rows[row + r] + shifts[shift + t]] · b[t, :] for six r and 16 columns.

    Args:
        context: numba's.
        a: float32, read at the sum of two positions.
        rows: int32 positions of the rows of the product; `row` is the first of the six.
        shifts: int32 positions of the terms of the sums; `shift` is the first of `count`.
        b: float32 with a line of 16 for each term, the first at `b_at`.
        out: float32, six lines of 16 from `out_at` on.
        add: Whether to add to `out` or to write.
    """
    n = types.int64
    signature = types.void(a, rows, n, shifts, n, n, b, n, out, n, types.boolean)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds = signature.args
        a, rows, row, shifts, shift, count, b, b_at, out, out_at, add = args

        def pointer(i: int, position: Any) -> Any:
            return _pointer(context, builder, kinds[i], args[i], position)

        start, lines = pointer(0, _INT64(0)), pointer(1, row)
        bases = [_at(builder, start, _index(builder, lines, r)) for r in range(ROWS)]
        sums = _products(builder, bases, pointer(3, shift), pointer(6, b_at), count)
        target = pointer(8, out_at)
        places = [(r, v) for r in range(ROWS) for v in range(_VECTORS)]
        with builder.if_else(add) as (adding, writing):
            for branch, old in ((adding, True), (writing, False)):
                with branch:
                    for r, v in places:
                        place = _at(builder, target, r * COLUMNS + v * _WIDTH)
                        total = sums[r][v]
                        if old:
                            total = builder.fadd(_load(builder, place), total)
                        _store(builder, total, place)
        return context.get_dummy_value()

    return signature, code


@intrinsic
def turn(context, source, source_at, source_step, target, target_at, target_step):  # type: ignore[no-untyped-def]
    """target[j, i] = source[i, j] for i, j < 8, float32; lines are `…_step` apart."""
    n = types.int64
    signature = types.void(source, n, n, target, n, n)

    def code(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kinds = signature.args
        first = _pointer(context, builder, kinds[0], args[0], args[1])
        lines = [builder.mul(args[2], _INT64(i)) for i in range(_WIDTH)]
        a = [_load(builder, _at(builder, first, line)) for line in lines]
        pairs = [(a[i], a[i + 1]) for i in (0, 2, 4, 6)]
        low = [_shuffle(builder, *p, 0, 8, 1, 9, 4, 12, 5, 13) for p in pairs]
        high = [_shuffle(builder, *p, 2, 10, 3, 11, 6, 14, 7, 15) for p in pairs]
        four = []
        for i in (0, 2):
            for half in (low, high):
                four.append(_shuffle(builder, *half[i : i + 2], 0, 1, 8, 9, 4, 5, 12, 13))
                four.append(_shuffle(builder, *half[i : i + 2], 2, 3, 10, 11, 6, 7, 14, 15))
        ends = [(four[i], four[i + 4]) for i in range(4)]
        out = [_shuffle(builder, *e, 0, 1, 2, 3, 8, 9, 10, 11) for e in ends]
        out += [_shuffle(builder, *e, 4, 5, 6, 7, 12, 13, 14, 15) for e in ends]
        first = _pointer(context, builder, kinds[3], args[3], args[4])
        for j, line in enumerate(out):
            _store(builder, line, _at(builder, first, builder.mul(args[5], _INT64(j))))
        return context.get_dummy_value()

    return signature, code
